//! Column types: times in milliseconds, ids as bytes, names as text.

use std::str::FromStr;

use holdfast_protocol::generation::Generation;
use holdfast_protocol::job::act::Sha256Text;
use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use uuid::Uuid;

#[derive(Clone, Copy)]
pub(super) struct Time(pub Timestamp);

impl ToSql for Time {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.as_millisecond().into())
    }
}

impl FromSql for Time {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Timestamp::from_millisecond(value.as_i64()?).map(Self).map_err(FromSqlError::other)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Id(pub Uuid);

impl ToSql for Id {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
    }
}

impl FromSql for Id {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Uuid::from_slice(value.as_blob()?).map(Self).map_err(FromSqlError::other)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Number(pub Generation);

impl ToSql for Number {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let number = i64::try_from(self.0.number());
        number.map(Into::into).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    }
}

impl FromSql for Number {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = u64::try_from(value.as_i64()?).map_err(FromSqlError::other)?;
        Ok(Self(Generation::new(number)))
    }
}

/// A name, or another type that reads itself from text.
pub(super) struct Text<T>(pub T);

impl<T> FromSql for Text<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(FromSqlError::other)
    }
}

/// A column whose text its type reads, with the type's own sentence where it does not.
pub(super) fn text<T>(
    row: &Row<'_>,
    name: &str,
    read: impl Fn(String) -> Result<T, &'static str>,
) -> rusqlite::Result<T> {
    Ok(read(row.get::<_, String>(name)?).map_err(|says| FromSqlError::Other(says.into()))?)
}

pub(super) fn digest(row: &Row<'_>, name: &str) -> rusqlite::Result<Sha256Text> {
    text(row, name, Sha256Text::try_from)
}
