import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { peakMemoryOf, type Worker } from "./child.ts";
import { type Contestant, requestHead, requestText } from "./contestants.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { pin } from "./pin.ts";
import { startPortico } from "./portico.ts";
import type { UploadJob, UploadResult } from "./upload.ts";
import { MODEL } from "./workload.ts";

const MIB = 1024 * 1024;
const OTHERS = 16;

/** One connection uploads a large body while others make normal calls. */
export interface MixedCase {
  readonly name: string;
  readonly bytes: number;
  /** Where the body contains `model`. If it is last, the proxy must wait for the end of the body. */
  readonly model: "first" | "last";
  readonly isConverted: boolean;
}

export const MIXED_CASES: readonly MixedCase[] = [
  { name: "200 MiB, same protocol, model first", bytes: 200 * MIB, model: "first", isConverted: false },
  { name: "200 MiB, same protocol, model last", bytes: 200 * MIB, model: "last", isConverted: false },
  { name: "100 MiB, converting, model first", bytes: 100 * MIB, model: "first", isConverted: true },
];

export interface MixedResult {
  readonly name: string;
  /** Seconds of the slowest upload, including its answer. */
  readonly seconds: number;
  /** Milliseconds of the normal calls, without and during the upload. */
  readonly quietP99: number;
  readonly p99: number;
  readonly slowest: number;
  /** MiB; undefined without `/proc`. */
  readonly peakMemory: number | undefined;
}

export interface MixedHost {
  readonly dir: string;
  readonly upstream: string;
  readonly log: number;
  readonly load: Worker<LoadJob, LoadResult>;
  readonly uploader: Worker<UploadJob, UploadResult>;
  /** Uploads, one after another. */
  readonly times: number;
  /** Milliseconds of normal calls before the first upload. */
  readonly quietMs: number;
}

/** Uses a new process, because the peak of memory is that of the process's whole life. Throws if a call or an upload fails. */
export async function runMixed(mixed: MixedCase, host: MixedHost): Promise<MixedResult> {
  const dir = join(host.dir, mixed.name.replace(/\W+/g, "-"));
  mkdirSync(dir);
  const portico = await startPortico(dir, host.upstream, host.log);
  pin("contestant", portico.pid);
  try {
    const { origin, pid, tokens } = portico;
    const port = Number(new URL(origin).port);
    const other: Contestant = { name: "others", role: "same", origin, pid, protocol: "messages", token: tokens.messages };
    const calls = { port, request: requestText(other, "plain"), connections: OTHERS };
    // The first measurement only warms up the new process.
    await host.load.run({ ...calls, ms: host.quietMs });
    const quiet = await host.load.run({ ...calls, ms: host.quietMs });
    const during = host.load.run({ ...calls, ms: Number.MAX_SAFE_INTEGER });
    const token = mixed.isConverted ? tokens["chat-completions"] : tokens.messages;
    const uploads = await host.uploader.run({ ...uploadOf(mixed, origin, token), port, times: host.times });
    host.load.cut();
    const busy = await during;
    const failed = uploads.statuses.find((status) => status !== 200);
    if (failed !== undefined) throw new Error(`${mixed.name}: the upload was answered with status ${failed}`);
    if (quiet.failures + busy.failures > 0) throw new Error(`${mixed.name}: ${busy.failures} of the others' calls failed`);
    return {
      name: mixed.name,
      seconds: Math.max(...uploads.seconds),
      quietP99: quiet.p99,
      p99: busy.p99,
      slowest: busy.slowest,
      peakMemory: peakMemoryOf(pid),
    };
  } finally {
    await portico.stop();
  }
}

/** A body of exactly this many bytes. Nearly all of them are one long string, as in an image or a document. */
function uploadOf(mixed: MixedCase, origin: string, token: string): Omit<UploadJob, "port" | "times"> {
  const settings = `"model":"${MODEL}","max_tokens":1024`;
  const messages = '"messages":[{"role":"user","content":"';
  const before = mixed.model === "first" ? `{${settings},${messages}` : `{${messages}`;
  const after = mixed.model === "first" ? '"}]}' : `"}],${settings}}`;
  const head = requestHead({ origin, protocol: "messages", token }, mixed.bytes).replace(
    "\r\n\r\n",
    "\r\nconnection: close\r\n\r\n",
  );
  return { head, before, filling: mixed.bytes - before.length - after.length, after };
}
