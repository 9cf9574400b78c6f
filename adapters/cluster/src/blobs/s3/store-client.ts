import { hash } from "node:crypto";
import { Readable } from "node:stream";
import type { ports } from "@portico/core";
import type { XmlElement } from "@rgrove/parse-xml";
import { Pool } from "undici/index.js";
import { readXml, textOf } from "./read-xml.ts";
import { createSignRequest, type StoreCredentials } from "./sign-request.ts";
import { createStoreAddress, type StoreAddressOptions } from "./store-address.ts";
import { isPassing, StoreError } from "./store-error.ts";

/** Requests to one bucket. They are signed, and repeated within their idle timeout if the error can be temporary. */
export interface StoreClient {
  /** Prefix of the names of all objects. */
  readonly prefix: string;
  /** Send a request and read its whole answer. Throws StoreError, the signal's reason, and errors of the connection. */
  ask(request: StoreRequest, signal: AbortSignal): Promise<StoreAnswer>;
  /** As `ask`, but the caller must read or destroy the body, and the signal no longer ends it. */
  open(request: StoreRequest, signal: AbortSignal): Promise<OpenAnswer>;
  /** Checks other keys. Returns the function that uses them for later requests. Throws TypeError. */
  prepareKeys(keys: Omit<StoreCredentials, "region">): () => void;
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
  /** Overrides the client's own idle timeout. A failed request is not repeated after this time. */
  readonly silenceMs?: number;
}

export interface StoreBody {
  readonly size: number;
  readonly sha256: string;
  readonly chunks: readonly Uint8Array[];
}

export interface StoreAnswer {
  readonly headers: StoreHeaders;
  /** Undefined if the answer is not XML. */
  readonly root: XmlElement | undefined;
}

export interface OpenAnswer {
  readonly status: number;
  readonly headers: StoreHeaders;
  readonly body: Readable;
}

/** By lowercase name. */
export type StoreHeaders = Readonly<Record<string, string | string[] | undefined>>;

const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 200;
const CONNECT_MS = 10_000;
/** The longest answer is a page of 1,000 names. */
const ANSWER_BYTES = 8 * 1024 * 1024;
const NOTHING: StoreBody = { size: 0, sha256: hash("sha256", ""), chunks: [] };

/** Throws TypeError for invalid options. */
export function createStoreClient(
  options: StoreAddressOptions & StoreCredentials,
  silenceMs: number,
  clock: ports.Clock,
): StoreClient {
  const address = createStoreAddress(options);
  let sign = createSignRequest(options, clock);
  const pool = new Pool(address.origin, { connect: { timeout: CONNECT_MS }, allowH2: false });

  const silenceOf = (request: StoreRequest): number => request.silenceMs ?? silenceMs;
  const send = async (request: StoreRequest, signal: AbortSignal): Promise<OpenAnswer> => {
    const { method, key, query = {}, headers = {}, body = NOTHING } = request;
    const url = address.toUrl(key, query);
    const silence = silenceOf(request);
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
  /** Each attempt removes its listener: the signal may live as long as the app, and an open answer outlives the attempt. */
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
  const repeat = async <T>(
    request: StoreRequest,
    signal: AbortSignal,
    work: (signal: AbortSignal, isRepeated: boolean) => Promise<T>,
  ): Promise<T> => {
    const beganAt = performance.now();
    for (let tried = 1; ; tried++) {
      try {
        return await attempt(signal, (own) => work(own, tried > 1));
      } catch (error) {
        if (signal.aborted || tried === ATTEMPTS || !isPassing(error)) throw error;
        // Callers of a silent store get its error after one silence, and not after one for each attempt.
        if (performance.now() - beganAt >= silenceOf(request)) throw error;
      }
      // Doubled each time, and randomised, so that clients that the store turned away do not return all at once.
      await clock.sleep(FIRST_PAUSE_MS * 2 ** (tried - 1) * (0.5 + Math.random() / 2), signal);
    }
  };

  return {
    prefix: address.prefix,
    ask: (request, signal) =>
      repeat(request, signal, async (own, isRepeated) => {
        const { status, headers, body } = await send(request, own);
        const root = readXml(await readText(body));
        // An error can also have a success status, because the status was sent before the work was done.
        if (!isSuccess(status) || root?.name === "Error") throw new StoreError(status, codeOf(root), isRepeated);
        return { headers, root };
      }),
    open: (request, signal) =>
      repeat(request, signal, async (own, isRepeated) => {
        const answer = await send(request, own);
        if (isSuccess(answer.status)) return answer;
        throw new StoreError(answer.status, codeOf(readXml(await readText(answer.body))), isRepeated);
      }),
    prepareKeys({ accessKeyId, secretAccessKey, sessionToken }) {
      const { region } = options;
      const next = {
        accessKeyId,
        secretAccessKey,
        ...(region !== undefined && { region }),
        ...(sessionToken && { sessionToken }),
      };
      const signNext = createSignRequest(next, clock);
      return () => void (sign = signNext);
    },
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

/** Only a single word is accepted, because it goes into messages. */
function codeOf(root: XmlElement | undefined): string {
  const code = root?.name === "Error" ? textOf(root, "Code") : "";
  return /^[A-Za-z]{1,64}$/.test(code) ? code : "";
}
