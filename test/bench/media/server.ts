/** The agent service with attachments and media, in its own process. */
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { startFilesService } from "../../harness/files-app.ts";
import { peakMemoryOf } from "../proxy/child.ts";

export type ServerJob =
  | { readonly do: "open"; readonly dataDir: string; readonly accelPrefix?: string }
  | { readonly do: "peak" };

export interface ServerResult {
  readonly url?: string;
  /** Most memory that the process had resident, in MiB. */
  readonly peak?: number | undefined;
}

process.on("message", async (job: ServerJob) => {
  if (job.do === "peak") return process.send?.({ peak: peakMemoryOf(process.pid) } satisfies ServerResult);
  const { url } = await startFilesService({
    dataDir: job.dataDir,
    ...(job.accelPrefix !== undefined && { accelPrefix: job.accelPrefix }),
    telemetry: openTelemetry({ level: "silent", format: "json" }),
  });
  process.send?.({ url } satisfies ServerResult);
});
