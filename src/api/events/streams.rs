//! The event streams that are open, by token and by organization.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::ids::{OrganizationId, TokenId};
use crate::problem::{Code, Problem};
use crate::roles::Caller;

/// How many event streams may be open; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamLimits {
    /// Of one token.
    pub per_token: usize,
    /// Of one organization.
    pub per_organization: usize,
}

/// The open streams. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    limits: StreamLimits,
    open: Arc<Mutex<OpenStreams>>,
}

#[derive(Debug, Default)]
struct OpenStreams {
    tokens: HashMap<TokenId, usize>,
    organizations: HashMap<OrganizationId, usize>,
}

/// The place of an open stream, which is free again when this is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct StreamPlace {
    open: Arc<Mutex<OpenStreams>>,
    caller: Caller,
}

impl Streams {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Self {
            limits,
            open: Arc::default(),
        }
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// `quota_exceeded`, with the name of the limit.
    pub(super) fn open(&self, caller: Caller) -> Result<StreamPlace, Problem> {
        let mut open = self.open.lock();
        let of = |limit: usize, used: Option<&usize>| limit > 0 && *used.unwrap_or(&0) >= limit;
        let StreamLimits {
            per_token,
            per_organization,
        } = self.limits;
        if of(per_token, open.tokens.get(&caller.token)) {
            return Err(refused(per_token, "token", "limits.streams_per_token"));
        }
        if of(
            per_organization,
            open.organizations.get(&caller.organization),
        ) {
            let setting = "organizations.streams";
            return Err(refused(per_organization, "organization", setting));
        }
        *open.tokens.entry(caller.token).or_default() += 1;
        *open.organizations.entry(caller.organization).or_default() += 1;
        Ok(StreamPlace {
            open: self.open.clone(),
            caller,
        })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        close(&mut open.tokens, self.caller.token);
        close(&mut open.organizations, self.caller.organization);
    }
}

fn close<K: Eq + Hash>(open: &mut HashMap<K, usize>, key: K) {
    if let Some(number) = open.get_mut(&key) {
        *number -= 1;
        if *number == 0 {
            open.remove(&key);
        }
    }
}

fn refused(limit: usize, whose: &str, setting: &str) -> Problem {
    let detail = format!(
        "{limit} event streams of this {whose} are open, which is {setting}; close one, or ask for \
         the job from time to time"
    );
    Problem::new(Code::QuotaExceeded, detail)
}

#[cfg(test)]
mod tests {
    use super::{StreamLimits, Streams};
    use crate::ids::{OrganizationId, TokenId};
    use crate::roles::{Caller, Role};

    fn caller(organization: OrganizationId) -> Caller {
        Caller {
            organization,
            token: TokenId::new(),
            role: Role::Holder,
            address: None,
        }
    }

    #[test]
    fn streams_are_limited_by_token_and_by_organization() {
        let streams = Streams::new(StreamLimits {
            per_token: 2,
            per_organization: 3,
        });
        let hospital = OrganizationId::new();
        let (one, two) = (caller(hospital), caller(hospital));
        let first = streams.open(one).unwrap();
        let _second = streams.open(one).unwrap();
        let refused = streams.open(one).unwrap_err();
        assert!(
            refused.detail.contains("limits.streams_per_token"),
            "{refused}"
        );
        let _third = streams.open(two).unwrap();
        let refused = streams.open(two).unwrap_err();
        assert!(
            refused.detail.contains("organizations.streams"),
            "{refused}"
        );
        let _other = streams.open(caller(OrganizationId::new())).unwrap();
        drop(first);
        assert!(streams.open(two).is_ok());
    }
}
