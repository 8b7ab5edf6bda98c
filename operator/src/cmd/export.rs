//! `holdfast export`: everything of a period as files.

use crate::args::ExportArgs;
use crate::clock;
use crate::error::CliError;
use crate::export::{ExportRequest, Manifest, export};
use crate::hub::Hub;
use crate::screen::Screen;

pub async fn run(args: ExportArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let now = clock::now();
    let out = args.out;
    let request = ExportRequest {
        from: args.from.at(now),
        to: args.to.at(now),
        now,
        customer: args.customer,
        filter: args.filter,
        out: out.clone(),
        file_bytes_max: args.file_mib_max << 20,
    };
    let manifest = export(request, hub, screen).await?;
    screen.show(&manifest, |manifest, style| text(manifest, &out, style))
}

fn text(manifest: &Manifest, out: &std::path::Path, style: crate::screen::Style) -> String {
    let rows = manifest.files.iter().map(|file| {
        [file.name.to_owned(), file.rows.to_string(), file.bytes.to_string(), file.left_out.to_string()]
            .map(crate::render::plain)
            .to_vec()
    });
    let table = crate::render::table(&["FILE", "ROWS", "BYTES", "LEFT OUT"], rows, style);
    format!("{table}\nwritten to {}; read README.md and summary.md in it first\n", out.display())
}
