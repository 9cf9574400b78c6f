import { PassThrough, Readable } from "node:stream";
import type { RequestTrace } from "../ports/telemetry.ts";
import type { Exchange } from "../route.ts";
import type { InstalledRoute, SurfaceServices } from "./pipeline.ts";
import { webHeaders } from "./web-headers.ts";
import { toWebStream } from "./web-stream.ts";

export interface FetchExchange {
  readonly request: Request;
  readonly body: Readable | undefined;
  readonly left: AbortController;
  readonly trace: RequestTrace;
  readonly services: SurfaceServices;
  readonly id: string;
}

/** Statuses whose answers have no body: a Response with one cannot be made. */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Run an exchange route on a fetch host: resolves as soon as the handler sends its head, and rejects with what it threw before. Whatever
 * happens later is told by the stream: it ends, or it breaks. The trace ends with the stream, not with the head.
 */
export function exchanged(route: InstalledRoute, input: object, over: FetchExchange): Promise<Response> {
  const { request, left, trace } = over;
  return new Promise((resolve, reject) => {
    const answer = new PassThrough();
    let isSent = false;
    let isBroken = false;
    const exchange: Exchange = {
      headers: Object.fromEntries(request.headers),
      body: over.body ?? Readable.from([]),
      respond(status, headers) {
        if (isSent) throw new Error("respond() was called twice");
        const isBodyless = request.method === "HEAD" || BODYLESS.has(status);
        const stream = isBodyless ? null : toWebStream(answer);
        const response = new Response(stream, { status, headers: webHeaders({ ...headers, "x-portico-request-id": over.id }) });
        isSent = true;
        if (isBodyless) answer.resume();
        answer.once("close", () => {
          const isWhole = answer.readableEnded;
          if (!isWhole) left.abort(new DOMException("The caller went away", "AbortError"));
          trace.end({ status, ...(isBroken && { error: "answer_broken" }) });
        });
        resolve(response);
        return answer;
      },
    };
    left.signal.addEventListener("abort", () => answer.destroy(), { once: true });
    // Without a listener a stream that breaks is an uncaught exception; the reader of the answer is told by the stream itself.
    answer.on("error", () => {});
    run(route, { ...input, exchange }).then(
      () => {
        if (!isSent) reject(new Error(`${route.key} ended without an answer`));
      },
      (error: Error) => {
        if (!isSent) return reject(error);
        if (answer.destroyed) return;
        over.services.telemetry.log.error(`${route.key} broke after its head`, { request: over.id }, error);
        isBroken = true;
        answer.destroy(error);
      },
    );
  });
}

async function run(route: InstalledRoute, input: object): Promise<void> {
  await route.handler(input as never);
}
