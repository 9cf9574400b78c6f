import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Areas whose suites also run on a cluster. */
const AREAS = [
  "workflow-service",
  "model-proxy",
  "conversations-runs",
  "agent-documents",
  "agent-webhook",
  "attachments-media",
  "mcp",
  "tool-accounts",
  "usage",
];
const TEST = join(import.meta.dirname, "../..");

/** Modules of the harness that open services, also as clusters. */
const HARNESS = /harness\/(?:(?:workflow|proxy|agent|webhook|files)-app|looped-agents|members)\.ts"/;
/** What opens a service as the only process. */
const ITSELF = /\bcreateApp\(|harness\/workflow-process\.ts"/;

/** The files of the suites, from `test`: `onCluster` open services with the harness, and `itself` without it. The others open none. */
export function suiteFiles(): { readonly onCluster: string[]; readonly itself: string[] } {
  const files = AREAS.flatMap((area) => globSync(`spec/${area}/**/*.test.ts`, { cwd: TEST }));
  const texts = files.map((file) => [file, readFileSync(join(TEST, file), "utf8")] as const);
  const onCluster = texts.filter(([, text]) => HARNESS.test(text));
  const itself = texts.filter(([, text]) => !HARNESS.test(text) && ITSELF.test(text));
  return { onCluster: onCluster.map(([file]) => file), itself: itself.map(([file]) => file).sort() };
}
