//! Converts cells of a Parquet file to the text that they would have in CSV.

use std::fmt::{Display, LowerExp, Write};
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrowPrimitiveType, downcast_integer};
use arrow_schema::{DataType, TimeUnit};
use pais_core::definition::ColumnRole;
use pais_core::schema::{SchemaColumn, no_subject};
use pais_core::table::ReadError;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::read::cells::{Refusal, SetCell, oversized};
use crate::read::chunk_builder::ChunkBuilder;
use crate::read::set_columns::SetColumns;

const NANOSECONDS: i128 = 1_000_000_000;
const MILLISECONDS_OF_A_DAY: i64 = 86_400_000;

/// Whether cells of this type have a text form.
pub(super) fn is_scalar(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_decimal()
        || matches!(
            data_type,
            DataType::Null
                | DataType::Boolean
                | DataType::Utf8View
                | DataType::Float32
                | DataType::Float64
                | DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(_, _)
        )
}

/// Adds the cells of a column and returns their size in bytes, as text with one separator each. The
/// first cell is that of record `first`.
///
/// # Errors
/// If a cell cannot be decoded.
pub(super) fn push(
    builder: &mut ChunkBuilder<'_>,
    slot: usize,
    array: &dyn Array,
    first: u64,
) -> Result<u64, ReadError> {
    let limit = builder.cell_bytes();
    let render = list(array, builder.spec(slot), limit).unwrap_or_else(|| scalar(array, limit));
    let is_subject = builder.spec(slot).role() == ColumnRole::Subject;
    let mut text = String::new();
    let mut bytes = 0u64;
    // Also of a column of the type Null, and of a dictionary with a null.
    let nulls = array.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    for row in 0..array.len() {
        if is_null(row) && !is_subject {
            builder.push_null(Some(slot));
            bytes += 1;
            continue;
        }
        let line = first + row as u64;
        text.clear();
        match render(row, &mut text) {
            _ if is_null(row) => {
                builder.refuse_cell(Some(slot), Refusal::Unfit(no_subject()), line)?
            }
            Ok(()) => builder.push_cell(Some(slot), text.as_bytes(), || line)?,
            Err(refusal) => builder.refuse_cell(Some(slot), refusal, line)?,
        }
        bytes += 1 + text.len() as u64;
    }
    Ok(bytes)
}

/// The cells of a column that is one of the items of a set.
pub(super) struct ItemCells<'a> {
    /// The number of the item, counted over all sets.
    pub(super) item: usize,
    pub(super) cells: &'a dyn Array,
}

/// Adds the sets that are made of several columns, of which `items` has the cells. Returns their
/// size in bytes, as [`push`].
///
/// # Errors
/// If a cell cannot be decoded.
pub(super) fn push_sets(
    builder: &mut ChunkBuilder<'_>,
    sets: &mut SetColumns<'_>,
    items: &[ItemCells<'_>],
    first: u64,
) -> Result<u64, ReadError> {
    let limit = builder.cell_bytes();
    let rendered = items
        .iter()
        .map(|it| (it.item, it.cells.logical_nulls(), scalar(it.cells, limit)));
    let rendered: Vec<_> = rendered.collect();
    let rows = items.first().map_or(0, |it| it.cells.len());
    let mut text = String::new();
    let mut bytes = 0u64;
    for row in 0..rows {
        for (item, nulls, render) in &rendered {
            text.clear();
            if !nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                match render(row, &mut text) {
                    Ok(()) => sets.put(*item, text.as_bytes(), limit),
                    Err(refusal) => sets.refuse(*item, refusal),
                }
            }
            bytes += 1 + text.len() as u64;
        }
        sets.end_row(builder, || first + row as u64)?;
    }
    Ok(bytes)
}

/// Appends the text of a row's cell. The cell must not be null.
type Render<'a> = Box<dyn Fn(usize, &mut String) -> Result<(), Refusal> + 'a>;

/// Renders the cells of a column of lists; `None` for any other column.
fn list<'a>(array: &'a dyn Array, spec: &'a SchemaColumn, limit: usize) -> Option<Render<'a>> {
    if let Some(lists) = array.as_list_opt::<i32>() {
        let offsets = lists.value_offsets();
        let items = move |row| offsets[row] as usize..offsets[row + 1] as usize;
        return Some(joined(spec, limit, lists.values(), items));
    }
    if let Some(lists) = array.as_list_opt::<i64>() {
        let offsets = lists.value_offsets();
        let items = move |row| offsets[row] as usize..offsets[row + 1] as usize;
        return Some(joined(spec, limit, lists.values(), items));
    }
    let lists = array.as_fixed_size_list_opt()?;
    let items = |row| {
        let start = lists.value_offset_at(row);
        start..start + lists.value_length() as usize
    };
    Some(joined(spec, limit, lists.values(), items))
}

fn joined<'a>(
    spec: &'a SchemaColumn,
    limit: usize,
    values: &'a dyn Array,
    items: impl Fn(usize) -> Range<usize> + 'a,
) -> Render<'a> {
    let render = scalar(values, limit);
    let nulls = values.logical_nulls();
    Box::new(move |row, text| {
        let mut cell = SetCell::new(spec, limit);
        let mut item = String::new();
        for index in items(row) {
            // Missing among other items.
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
                continue;
            }
            item.clear();
            render(index, &mut item)?;
            cell.add(&item)?;
        }
        text.push_str(cell.text()?);
        Ok(())
    })
}

/// Renders the cells of a column of single values. Text of more than `limit` bytes is refused before
/// it is copied.
fn scalar(array: &dyn Array, limit: usize) -> Render<'_> {
    macro_rules! integer {
        ($of:ty) => {
            primitive::<$of>(array)
        };
    }
    downcast_integer! {
        array.data_type() => (integer),
        DataType::Utf8View => {
            let values = array.as_string_view();
            Box::new(move |row, text| {
                let value = values.value(row);
                if value.len() > limit {
                    return Err(oversized(limit));
                }
                text.push_str(value);
                Ok(())
            })
        }
        DataType::Boolean => {
            let values = array.as_boolean();
            Box::new(|row, text| write_display(text, &values.value(row)))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Box::new(|row, text| {
                let value = values.value(row);
                float(text, &value, f64::from(value))
            })
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Box::new(|row, text| {
                let value = values.value(row);
                float(text, &value, value)
            })
        }
        DataType::Decimal32(_, _) => decimal::<Decimal32Type>(array),
        DataType::Decimal64(_, _) => decimal::<Decimal64Type>(array),
        DataType::Decimal128(_, _) => decimal::<Decimal128Type>(array),
        DataType::Decimal256(_, _) => decimal::<Decimal256Type>(array),
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>();
            Box::new(|row, text| date(text, i64::from(values.value(row))))
        }
        DataType::Date64 => {
            let values = array.as_primitive::<Date64Type>();
            Box::new(|row, text| date(text, values.value(row).div_euclid(MILLISECONDS_OF_A_DAY)))
        }
        DataType::Timestamp(unit, zone) => {
            let zoned = zone.is_some();
            match unit {
                TimeUnit::Second => timestamp::<TimestampSecondType>(array, zoned, 1),
                TimeUnit::Millisecond => timestamp::<TimestampMillisecondType>(array, zoned, 1_000),
                TimeUnit::Microsecond => {
                    timestamp::<TimestampMicrosecondType>(array, zoned, 1_000_000)
                }
                TimeUnit::Nanosecond => {
                    timestamp::<TimestampNanosecondType>(array, zoned, NANOSECONDS)
                }
            }
        }
        // Not reached: types without a text form are refused when the file is opened, and every
        // cell of the type `Null` is null.
        _ => Box::new(|_, _| Err(Refusal::unfit("the cell's type has no text form"))),
    }
}

fn write_display(text: &mut String, value: &impl Display) -> Result<(), Refusal> {
    write!(text, "{value}").map_err(|_| Refusal::unfit("the cell has no text form"))
}

fn primitive<T: ArrowPrimitiveType<Native: Display>>(array: &dyn Array) -> Render<'_> {
    let values = array.as_primitive::<T>();
    Box::new(|row, text| write_display(text, &values.value(row)))
}

fn decimal<T: DecimalType>(array: &dyn Array) -> Render<'_> {
    let values = array.as_primitive::<T>();
    Box::new(|row, text| {
        text.push_str(&values.value_as_string(row));
        Ok(())
    })
}

/// The shortest text that reads back as the same number. Very large and very small numbers have an
/// exponent.
fn float<T: Display + LowerExp>(text: &mut String, value: &T, size: f64) -> Result<(), Refusal> {
    if size == 0.0 || !size.is_finite() || (1e-5..1e17).contains(&size.abs()) {
        return write_display(text, value);
    }
    write!(text, "{value:e}").map_err(|_| Refusal::unfit("the cell has no text form"))
}

fn date(text: &mut String, days: i64) -> Result<(), Refusal> {
    let seconds = days.checked_mul(MILLISECONDS_OF_A_DAY / 1000);
    let time = seconds.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    match time {
        Some(time) if (0..=9999).contains(&time.year()) => write_display(text, &time.date()),
        _ => Err(Refusal::unfit("the date is outside the years 0 to 9999")),
    }
}

/// RFC 3339; without an offset if the column has no time zone.
fn timestamp<T: ArrowPrimitiveType<Native = i64>>(
    array: &dyn Array,
    zoned: bool,
    per_second: i128,
) -> Render<'_> {
    let values = array.as_primitive::<T>();
    Box::new(move |row, text| {
        let nanoseconds = i128::from(values.value(row)) * (NANOSECONDS / per_second);
        let time = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok();
        let shown = time.and_then(|time| time.format(&Rfc3339).ok());
        let shown =
            shown.ok_or_else(|| Refusal::unfit("the time is outside the years 0 to 9999"))?;
        text.push_str(if zoned {
            &shown
        } else {
            shown.trim_end_matches('Z')
        });
        Ok(())
    })
}
