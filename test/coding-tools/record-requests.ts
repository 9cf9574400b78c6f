import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Protocol } from "../harness/callers.ts";
import type { CodingTool } from "../harness/coding-tools.ts";
import type { UpstreamRequest } from "../harness/upstream-request.ts";
import { NOTE } from "../harness/reading-model.ts";
import { root } from "../rooms/repository.ts";

/** What a tool sent, without its vendor's long texts. */
export interface RecordedTool {
  readonly package: string;
  readonly version: string;
  readonly speaks: Protocol;
  readonly requests: readonly RecordedRequest[];
}

export interface RecordedRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const HEADERS = ["anthropic-version", "anthropic-beta", "content-type", "accept"];
/** Longer texts are instructions and descriptions of the tool's vendor: which ones there are is what matters, not their words. */
const LONGEST_TEXT = 100;

/**
 * Keeps what a tool sent as a fixture, where `PORTICO_RECORD` is set and the provider speaks the tool's own protocol: then the upstream got
 * the tool's own bytes.
 */
export async function recordCodingTool(
  { name, package: packageName, version, speaks }: CodingTool,
  protocol: Protocol,
  requests: readonly UpstreamRequest[],
  folder: string,
): Promise<void> {
  if (process.env["PORTICO_RECORD"] === undefined || protocol !== speaks) return;
  const calls = requests.filter(({ method }) => method === "POST");
  const recorded: RecordedTool = {
    package: packageName,
    version,
    speaks,
    requests: await Promise.all(
      calls.map(async (call) => ({
        path: call.url,
        headers: Object.fromEntries(
          HEADERS.flatMap((header) => (call.headers[header] ? [[header, String(call.headers[header])]] : [])),
        ),
        body: shortened(JSON.parse((await call.text()).replaceAll(folder, "/tmp/somewhere"))),
      })),
    ),
  };
  writeFileSync(recordingOf(name), `${JSON.stringify(recorded, null, 2)}\n`);
}

/** The fixture of a tool, by its name in the guide. */
export function recordingOf(name: string): string {
  return join(root, "test/fixtures/coding-tools", `${name.toLowerCase().replaceAll(/\W+/g, "-")}.json`);
}

function shortened(value: unknown, key?: string): unknown {
  if (Array.isArray(value)) return value.map((each) => shortened(each));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shortened(each, name)]));
  if (typeof value !== "string") return value;
  if (value.includes(NOTE)) return NOTE;
  // Its length decides whether Chat Completions takes it.
  if (key === "user_id") return "x".repeat(value.length);
  return value.length > LONGEST_TEXT || key === "description" ? `(${value.length} characters)` : value;
}
