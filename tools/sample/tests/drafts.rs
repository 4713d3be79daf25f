//! The schema that is proposed for each sample alone reads the sample.

use pais_core::schema::Schema;
use pais_io::draft::{self, DraftOptions};
use pais_io::read::{ReadLimits, TextParameters, csv};
use pais_sample::Sample;

#[test]
fn the_draft_of_each_sample_reads_its_rows() {
    for sample in Sample::ALL {
        let mut rows = Vec::new();
        sample.write_csv(2_000, 1, &mut rows).unwrap();
        let draft = draft::csv(
            rows.as_slice(),
            TextParameters::default(),
            DraftOptions::default(),
        );
        let draft = draft.unwrap();
        let declared = sample.schema();
        let declared = declared["columns"].as_array().unwrap();
        assert_eq!(
            draft.dataset.columns.len(),
            declared.len(),
            "{}",
            sample.name()
        );
        let schema = Schema::inline(&draft.dataset).unwrap();
        let limits = ReadLimits::default();
        let mut read = 0;
        let chunk = |chunk: pais_core::table::Table| {
            read += chunk.rows;
            Ok::<_, std::convert::Infallible>(())
        };
        csv::read_as(&schema, rows.as_slice(), draft.format, limits, None, chunk).unwrap();
        assert_eq!(read, 2_000);
        // What the sample declares an identifier is not proposed to be stored as it is.
        for (column, declared) in draft.dataset.columns.iter().zip(declared) {
            if declared["role"] == "identifier" {
                let role = column.role.as_str();
                assert!(["identifier", "subject"].contains(&role), "{}", column.name);
            }
        }
    }
}
