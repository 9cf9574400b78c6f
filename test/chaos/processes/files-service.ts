import { startFilesService } from "../../harness/files-app.ts";

// Runs in its own process, which the test kills: an agent service that accepts attachments and media.
const [dataDir = ""] = process.argv.slice(2);
const { url } = await startFilesService({ dataDir });
process.send?.(url);
