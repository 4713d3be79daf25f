//! The event streams that are open, by token and by organization.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::problem::{Code, Problem};
use crate::roles::Caller;

/// How many event streams may be open; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamLimits {
    /// For one token.
    pub per_token: usize,
    /// For one organization.
    pub per_organization: usize,
}

/// The open streams. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    limits: StreamLimits,
    open: Arc<Mutex<OpenStreams>>,
}

/// Their number by the id of their token, and by that of its organization.
type OpenStreams = HashMap<Uuid, usize>;

/// The slot of an open stream, which is released when this is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct StreamPlace {
    open: Arc<Mutex<OpenStreams>>,
    /// Of its token and of its organization.
    ids: [Uuid; 2],
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
        let StreamLimits {
            per_token,
            per_organization,
        } = self.limits;
        let ids = [caller.token.0, caller.organization.0];
        for (id, limit, whose, setting) in [
            (ids[0], per_token, "token", "limits.streams_per_token"),
            (
                ids[1],
                per_organization,
                "organization",
                "organizations.streams",
            ),
        ] {
            if limit > 0 && open.get(&id).is_some_and(|number| *number >= limit) {
                return Err(refused(limit, whose, setting));
            }
        }
        for id in ids {
            *open.entry(id).or_default() += 1;
        }
        Ok(StreamPlace {
            open: self.open.clone(),
            ids,
        })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        for id in self.ids {
            if let Some(number) = open.get_mut(&id) {
                *number -= 1;
            }
        }
        open.retain(|_, number| *number > 0);
    }
}

fn refused(limit: usize, whose: &str, setting: &str) -> Problem {
    let detail = format!(
        "{limit} event streams of this {whose} are open, or lists that wait, which is {setting}; close \
         one, or ask from time to time"
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
