//! Locations of Parquet files outside the service: of a dataset's rows, and of a job's release.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Where the rows of a dataset are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DatasetLocation {
    /// A Parquet file, or a folder with Parquet files: `s3://bucket/folder` or `file:///folder`, below a
    /// prefix that the operator has granted to the organization.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 1024, pattern = "^(s3://|file:///)[A-Za-z0-9_.=+,/-]+$")
    )]
    pub url: String,
    /// The format of the files.
    pub format: LocationFormat,
}

/// The format of files at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LocationFormat {
    /// Apache Parquet.
    Parquet,
}

/// Where the files of a release are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseLocation {
    /// A folder: `s3://bucket/folder` or `file:///folder`, below a prefix that the operator has granted to
    /// the organization. The files are in a folder of the release's id below it.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 1024, pattern = "^(s3://|file:///)[A-Za-z0-9_.=+,/-]+$")
    )]
    pub url: String,
}

/// Whether a job releases its last step, and where to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum JobRelease {
    /// Whether there is a release.
    Wanted(bool),
    /// A release that is written as files, too.
    Located(LocatedRelease),
}

/// A release that is written as files, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LocatedRelease {
    /// Where the files are written.
    pub location: ReleaseLocation,
}

impl JobRelease {
    /// Whether the job makes a release.
    pub fn is_wanted(&self) -> bool {
        *self != Self::Wanted(false)
    }

    /// Where its files are written; `None` for a release without files.
    pub fn location(&self) -> Option<&ReleaseLocation> {
        match self {
            Self::Wanted(_) => None,
            Self::Located(located) => Some(&located.location),
        }
    }
}

impl<'de> Deserialize<'de> for JobRelease {
    /// Not derived: a derived untagged enum would lose the pointer to the invalid value.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ReleaseVisitor;
        impl<'de> Visitor<'de> for ReleaseVisitor {
            type Value = JobRelease;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("true, false or {location: {url}}")
            }
            fn visit_bool<E>(self, wanted: bool) -> Result<Self::Value, E> {
                Ok(JobRelease::Wanted(wanted))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let located = LocatedRelease::deserialize(MapAccessDeserializer::new(map))?;
                Ok(JobRelease::Located(located))
            }
        }
        deserializer.deserialize_any(ReleaseVisitor)
    }
}
