import { startFilesService } from "../../harness/files-app.ts";

// A process of its own, meant to be killed: an agent service that takes attachments and media.
const [dataDir = ""] = process.argv.slice(2);
const { url } = await startFilesService({ dataDir });
process.send?.(url);
