import { hash } from "node:crypto";
import { Readable } from "node:stream";
import type { ports } from "@portico/core";
import type { XmlElement } from "@rgrove/parse-xml";
import { Pool } from "undici";
import { readXml, textOf } from "./read-xml.ts";
import { createSignRequest, type StoreCredentials } from "./sign-request.ts";
import { createStoreAddress, type StoreAddressOptions } from "./store-address.ts";
import { isPassing, StoreError } from "./store-error.ts";

/** Requests to one bucket: signed, and repeated for a while where what went wrong may pass. */
export interface StoreClient {
  /** What the names of all objects begin with. */
  readonly prefix: string;
  /** Send a request and read its whole answer. Throws StoreError, the signal's reason, and what became of the line. */
  ask(request: StoreRequest, signal: AbortSignal): Promise<StoreAnswer>;
  /** As `ask`, but the body is the caller's to read or destroy, and the signal no longer ends it. */
  open(request: StoreRequest, signal: AbortSignal): Promise<OpenAnswer>;
  close(): Promise<void>;
}

export interface StoreRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Default: the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** In memory, so that it can be sent again. */
  readonly body?: StoreBody;
  /** Other than the client's own. */
  readonly silenceMs?: number;
}

export interface StoreBody {
  readonly size: number;
  readonly sha256: string;
  readonly chunks: readonly Uint8Array[];
}

export interface StoreAnswer {
  readonly headers: StoreHeaders;
  /** Undefined where the answer is no XML. */
  readonly root: XmlElement | undefined;
}

export interface OpenAnswer {
  readonly status: number;
  readonly headers: StoreHeaders;
  readonly body: Readable;
}

/** By their names in small letters. */
export type StoreHeaders = Readonly<Record<string, string | string[] | undefined>>;

const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 200;
const CONNECT_MS = 10_000;
/** The longest answer is a page of 1,000 names. */
const ANSWER_BYTES = 8 * 1024 * 1024;
const NOTHING: StoreBody = { size: 0, sha256: hash("sha256", ""), chunks: [] };

/** Throws TypeError for options that are none. */
export function createStoreClient(
  options: StoreAddressOptions & StoreCredentials,
  silenceMs: number,
  clock: ports.Clock,
): StoreClient {
  const address = createStoreAddress(options);
  const sign = createSignRequest(options, clock);
  const pool = new Pool(address.origin, { connect: { timeout: CONNECT_MS }, allowH2: false });

  const send = async (request: StoreRequest, signal: AbortSignal): Promise<OpenAnswer> => {
    const { method, key, query = {}, headers = {}, body = NOTHING } = request;
    const url = address.toUrl(key, query);
    const silence = request.silenceMs ?? silenceMs;
    const signed = await sign({ method, url, headers, sha256: body.sha256 });
    const answer = await pool.request({
      method,
      path: url.pathname + url.search,
      headers: body.size > 0 ? { ...signed, "content-length": `${body.size}` } : signed,
      body: body.size > 0 ? Readable.from(body.chunks) : null,
      signal,
      headersTimeout: silence,
      bodyTimeout: silence,
    });
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  };
  /** A listener goes with its attempt: the signal may be as old as the app, and what is open outlives it. */
  const attempt = async <T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const own = new AbortController();
    const stop = (): void => own.abort(signal.reason);
    signal.throwIfAborted();
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await work(own.signal);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  };
  const repeat = async <T>(signal: AbortSignal, work: (signal: AbortSignal, isRepeated: boolean) => Promise<T>): Promise<T> => {
    for (let tried = 1; ; tried++) {
      try {
        return await attempt(signal, (own) => work(own, tried > 1));
      } catch (error) {
        if (signal.aborted || tried === ATTEMPTS || !isPassing(error)) throw error;
      }
      // Doubled each time, and not the same for all whom the store has turned away at once.
      await clock.sleep(FIRST_PAUSE_MS * 2 ** (tried - 1) * (0.5 + Math.random() / 2), signal);
    }
  };

  return {
    prefix: address.prefix,
    ask: (request, signal) =>
      repeat(signal, async (own, isRepeated) => {
        const { status, headers, body } = await send(request, own);
        const root = readXml(await readText(body));
        // Also where the status, sent before all was done, says that it went well.
        if (!isSuccess(status) || root?.name === "Error") throw new StoreError(status, codeOf(root), isRepeated);
        return { headers, root };
      }),
    open: (request, signal) =>
      repeat(signal, async (own, isRepeated) => {
        const answer = await send(request, own);
        if (isSuccess(answer.status)) return answer;
        throw new StoreError(answer.status, codeOf(readXml(await readText(answer.body))), isRepeated);
      }),
    close: () => pool.destroy(),
  };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

async function readText(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > ANSWER_BYTES) throw new Error("The store's answer is too long");
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Only if it is a word: it goes into messages. */
function codeOf(root: XmlElement | undefined): string {
  const code = root?.name === "Error" ? textOf(root, "Code") : "";
  return /^[A-Za-z]{1,64}$/.test(code) ? code : "";
}
