import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";

/** One request as the upstream received it. */
export interface UpstreamRequest {
  /** Counts from 1. */
  readonly number: number;
  readonly method: string;
  /** Path and query as they came. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, with their spelling and order. */
  readonly rawHeaders: readonly string[];
  /** Bytes of the body that have arrived. */
  readonly received: number;
  /** Resolves as soon as that many bytes of the body have arrived; rejects when the body ends before. */
  arrived(bytes: number): Promise<void>;
  /** The whole body; rejects when it was cut, or when the upstream doesn't keep bodies. */
  bytes(): Promise<Buffer>;
  text(): Promise<string>;
  json(): Promise<unknown>;
  /** SHA-256 of the whole body, lowercase hex; rejects when it was cut. */
  sha256(): Promise<string>;
  /** How far the exchange came. */
  readonly stage: UpstreamStage;
  /** Resolves when the exchange has ended: `answered` in full, or `aborted` before. */
  readonly outcome: Promise<"answered" | "aborted">;
}

/** The sender left in the middle of its request's body. */
export class RequestCut extends Error {
  override readonly name = "RequestCut";
}

/** The request's body is coming; it is whole and no answer has begun; the answer has begun; the answer is whole. */
export type UpstreamStage = "body" | "waiting" | "answering" | "answered";

export interface Recording {
  readonly request: UpstreamRequest;
  /** Begin to read the body. */
  read(): void;
  /** The exchange has ended. */
  end(): void;
}

/** Record a request while it arrives. `keep` false counts and hashes its bytes and lets them go. */
export function recordRequest(incoming: IncomingMessage, response: ServerResponse, number: number, keep: boolean): Recording {
  const chunks: Buffer[] = [];
  const hash = createHash("sha256");
  const whole = Promise.withResolvers<void>();
  const outcome = Promise.withResolvers<"answered" | "aborted">();
  let waiting: { readonly bytes: number; resolve(): void; reject(error: Error): void }[] = [];
  let received = 0;
  let isWhole = false;

  const cut = () => {
    if (isWhole) return;
    const error = new RequestCut(`The body of request ${number} was cut after ${received} bytes`);
    whole.reject(error);
    for (const each of waiting.splice(0)) each.reject(error);
  };
  // A test may await it. A cut body that is not awaited is not a failure.
  whole.promise.catch(() => {});
  incoming.on("error", cut);
  incoming.once("close", cut);

  const request: UpstreamRequest = {
    number,
    method: incoming.method ?? "",
    url: incoming.url ?? "",
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    get received() {
      return received;
    },
    arrived(bytes) {
      if (received >= bytes) return Promise.resolve();
      const arrival = Promise.withResolvers<void>();
      waiting.push({ bytes, resolve: arrival.resolve, reject: arrival.reject });
      if (isWhole || incoming.destroyed) arrival.reject(new Error(`The body of request ${number} ended after ${received} bytes`));
      return arrival.promise;
    },
    async bytes() {
      if (!keep) throw new Error("This upstream lets go of bodies; ask for sha256()");
      await whole.promise;
      return Buffer.concat(chunks);
    },
    text: async () => (await request.bytes()).toString("utf8"),
    json: async () => JSON.parse(await request.text()) as unknown,
    sha256: () => whole.promise.then(() => hash.copy().digest("hex")),
    get stage() {
      if (response.writableFinished) return "answered";
      return response.headersSent ? "answering" : isWhole ? "waiting" : "body";
    },
    outcome: outcome.promise,
  };
  return {
    request,
    read() {
      incoming.on("data", (chunk: Buffer) => {
        received += chunk.length;
        hash.update(chunk);
        if (keep) chunks.push(chunk);
        const ready = waiting.filter((each) => received >= each.bytes);
        waiting = waiting.filter((each) => received < each.bytes);
        for (const each of ready) each.resolve();
      });
      incoming.once("end", () => {
        isWhole = true;
        whole.resolve();
        for (const each of waiting.splice(0))
          each.reject(new Error(`The body of request ${number} ended after ${received} bytes`));
      });
    },
    end: () => outcome.resolve(response.writableFinished ? "answered" : "aborted"),
  };
}
