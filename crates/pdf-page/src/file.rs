//! PDF file: document structure and embedded fonts.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::FontFlags;
use pdf_writer::{Filter, Finish as _, Name, Pdf, Rect, Ref, TextStr};
use zeroize::Zeroizing;

use crate::canvas::Canvas;
use crate::fonts::{CODES, Font, Metrics};
use crate::{HEIGHT, WIDTH};

/// Three pages with three fonts have less: a buffer that grows leaves its former places unwiped.
const BYTES: usize = 2 * 1024 * 1024;

/// Writes pages into one file. It is wiped when it is dropped.
#[must_use]
pub fn file(title: &str, pages: &[Canvas]) -> Zeroizing<Vec<u8>> {
    let mut next = 1;
    let mut new = || {
        let id = Ref::new(next);
        next += 1;
        id
    };
    let mut pdf = Pdf::with_capacity(BYTES);
    let (catalog, tree, info) = (new(), new(), new());
    pdf.catalog(catalog).pages(tree).lang(TextStr("en"));
    pdf.document_info(info).title(TextStr(title)).producer(TextStr("Holdfast"));
    let fonts = Font::ALL.map(|font| (font, new()));
    for (font, id) in fonts {
        write_font(&mut pdf, id, [new(), new()], font.metrics());
    }
    let leaves: Vec<(Ref, Ref)> = pages.iter().map(|_| (new(), new())).collect();
    let count = i32::try_from(pages.len()).unwrap_or(i32::MAX);
    pdf.pages(tree).kids(leaves.iter().map(|(page, _)| *page)).count(count);
    for (ink, (page, content)) in pages.iter().zip(leaves) {
        let mut page = pdf.page(page);
        page.parent(tree).media_box(Rect::new(0.0, 0.0, WIDTH, HEIGHT)).contents(content);
        let mut resources = page.resources();
        let mut named = resources.fonts();
        for (font, id) in fonts {
            named.pair(Name(font.key().as_bytes()), id);
        }
        named.finish();
        resources.finish();
        page.finish();
        // Not compressed: the compressor would keep copies that are not wiped.
        pdf.stream(content, ink.as_bytes());
    }
    Zeroizing::new(pdf.finish())
}

fn write_font(pdf: &mut Pdf, id: Ref, [descriptor, file]: [Ref; 2], metrics: &Metrics) {
    let name = Name(metrics.name.as_bytes());
    let mut font = pdf.indirect(id).dict();
    font.pair(Name(b"Type"), Name(b"Font"));
    font.pair(Name(b"Subtype"), Name(b"TrueType"));
    font.pair(Name(b"BaseFont"), name);
    font.pair(Name(b"FirstChar"), i32::from(*CODES.start()));
    font.pair(Name(b"LastChar"), i32::from(*CODES.end()));
    font.insert(Name(b"Widths")).array().items(metrics.widths.iter().copied());
    font.pair(Name(b"FontDescriptor"), descriptor);
    font.pair(Name(b"Encoding"), Name(b"WinAnsiEncoding"));
    font.finish();
    let [left, below, right, above] = metrics.bounds;
    pdf.font_descriptor(descriptor)
        .name(name)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(left, below, right, above))
        .italic_angle(0.0)
        .ascent(metrics.ascent)
        .descent(metrics.descent)
        .cap_height(metrics.cap_height)
        .stem_v(80.0)
        .font_file2(file);
    let length = i32::try_from(metrics.file.len()).unwrap_or(i32::MAX);
    match packed(metrics.file) {
        Ok(packed) => {
            let mut stream = pdf.stream(file, &packed);
            stream.filter(Filter::FlateDecode).pair(Name(b"Length1"), length);
        }
        Err(_) => {
            pdf.stream(file, metrics.file).pair(Name(b"Length1"), length);
        }
    }
}

fn packed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes)?;
    packer.finish()
}
