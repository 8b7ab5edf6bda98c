//! The lines of a kept snapshot, whole or of one customer.

use holdfast_protocol::id::CustomerId;
use holdfast_protocol::state::{Line, StateReader, StateWriter};

use super::{SnapshotError, Unpacker};

/// Lines are given out together up to about so many bytes.
const CHUNK_BYTES: usize = 256 * 1024;

/// A kept snapshot that is being read.
pub struct KeptState {
    unpacker: Unpacker,
    reader: StateReader,
    part: Part,
    is_over: bool,
}

/// What of it is given out.
enum Part {
    /// The lines as they were kept, with the digests that they had.
    Whole,
    /// A document of its own.
    Customer(CustomerId, Option<Box<StateWriter>>),
}

impl KeptState {
    /// # Errors
    /// [`SnapshotError::Unpack`].
    pub fn new(packed: Vec<u8>, customer: Option<CustomerId>) -> Result<Self, SnapshotError> {
        let part = customer.map_or(Part::Whole, |customer| Part::Customer(customer, None));
        let unpacker = Unpacker::new(packed).map_err(SnapshotError::Unpack)?;
        Ok(Self { unpacker, reader: StateReader::default(), part, is_over: false })
    }

    /// The next lines; none after the last one.
    ///
    /// # Errors
    /// [`SnapshotError`]: what is damaged is not given out as whole.
    pub fn next_lines(&mut self) -> Result<Option<String>, SnapshotError> {
        if self.is_over {
            return Ok(None);
        }
        let mut text = String::new();
        while text.len() < CHUNK_BYTES {
            let Some(line) = self.unpacker.line().map_err(SnapshotError::Unpack)? else {
                self.reader.end()?;
                self.is_over = true;
                break;
            };
            self.add(&line, &mut text)?;
        }
        Ok(Some(text))
    }

    fn add(&mut self, line: &[u8], text: &mut String) -> Result<(), SnapshotError> {
        let read = self.reader.take(line)?;
        match (&mut self.part, read) {
            (Part::Whole, _) => {
                // What parses as JSON is UTF-8.
                text.push_str(&String::from_utf8_lossy(line));
                text.push('\n');
            }
            (Part::Customer(customer, writer), Line::Head(mut head)) => {
                head.scope.customer = Some(customer.clone());
                let (begun, line) = StateWriter::begin(head)?;
                *writer = Some(Box::new(begun));
                text.push_str(&line);
            }
            (Part::Customer(customer, writer), Line::Host(host)) => {
                let writer = writer.as_mut().ok_or(SnapshotError::Ended)?;
                if let Some(host) = host.of_customer(customer) {
                    text.push_str(&writer.host(host)?);
                }
            }
            (Part::Customer(_, writer), Line::Tail(_)) => {
                let writer = writer.take().ok_or(SnapshotError::Ended)?;
                text.push_str(&writer.end()?.line);
            }
        }
        Ok(())
    }
}
