import { Readable } from "node:stream";
import type { ports } from "@portico/core";
import type { Upstream, UpstreamRequest } from "./upstream.ts";
import { type CallEnds, UpstreamCall, type UpstreamTarget } from "./upstream-call.ts";
import { uploadStream } from "./upload-stream.ts";

/** Calls of a `fetch` function. The function decides about connections, so they are not closed with the provider. */
export function createFetchUpstream(target: UpstreamTarget, send: typeof fetch): Upstream {
  const open = new Set<FetchCall>();
  let isClosed = false;
  return {
    request: (request, signal) =>
      new Promise((resolve, reject) => {
        const upload = request.body instanceof Readable ? request.body : undefined;
        const call: FetchCall = new FetchCall(target, { upload, signal, resolve, reject }, () => open.delete(call));
        // A caller who has left already causes no upstream connection.
        if (call.isOver) return;
        open.add(call);
        if (isClosed) call.close();
        else void call.start(send, request);
      }),
    // The host has already waited for requests with calls in progress. Remaining calls are cut.
    async close() {
      isClosed = true;
      for (const call of open) call.close();
    },
  };
}

/** One call of `fetch`, whose answer body is a Node stream with backpressure in both directions. */
class FetchCall extends UpstreamCall {
  readonly #controller = new AbortController();
  readonly #origin: string;
  readonly #upload: Readable | undefined;
  readonly #settled: () => void;
  #answer: AnswerBody | undefined;
  #isSenderLate = false;

  constructor(target: UpstreamTarget, ends: CallEnds, settled: () => void) {
    super(target, ends);
    this.#origin = target.origin;
    this.#upload = ends.upload;
    this.#settled = settled;
  }

  async start(send: typeof fetch, request: UpstreamRequest): Promise<void> {
    const init = this.#init(request);
    if (!init) return;
    try {
      const response = await send(this.#origin + request.path, init);
      if (this.isOver) return void response.body?.cancel().catch(() => {});
      this.#receive(response);
    } catch (cause) {
      this.#break(cause as Error);
    }
  }

  close(): void {
    this.#break(new Error("The provider is closed"));
  }

  /** Undefined if a header is invalid. The message of that error repeats the header's value, which can be a credential. */
  #init({ method, headers, body }: UpstreamRequest): (RequestInit & { readonly duplex: "half" }) | undefined {
    try {
      return {
        method,
        headers: new Headers({ ...headers, "accept-encoding": "identity" }),
        // A redirect is an answer like any other.
        redirect: "manual",
        signal: this.#controller.signal,
        duplex: "half",
        ...(body && { body: this.#upload ? this.#stream(this.#upload, headers["content-length"]) : (body as BodyInit) }),
      };
    } catch {
      this.#break(new Error("A header of the request is invalid"));
      return undefined;
    }
  }

  #stream(upload: Readable, length: string | undefined): ReadableStream<Uint8Array> {
    return uploadStream(upload, length === undefined ? undefined : Number(length), {
      wants: () => (this.#isSenderLate = true),
      moves: () => {
        this.#isSenderLate = false;
        this.progressed();
      },
      breaks: (cause) => this.#break(cause),
    });
  }

  #receive(response: Response): void {
    this.#answer = new AnswerBody(response.body, {
      moves: () => this.progressed(),
      breaks: (cause) => this.#break(cause),
      ends: () => this.settle(),
      leaves: () => {
        this.settle();
        this.#controller.abort();
      },
    });
    this.answered(response.status, headersOf(response), this.#answer);
    // Start to read, so that a small answer is received without a reader.
    this.#answer.read(0);
  }

  #break(cause: Error): void {
    this.fail(cause);
    this.#controller.abort();
  }

  protected override settle(): void {
    super.settle();
    this.#settled();
  }

  protected override cut(error: Error): void {
    this.#controller.abort(error);
  }

  protected override isSenderLate(): boolean {
    return this.#isSenderLate;
  }

  protected override isReaderLate(): boolean {
    return this.#answer?.isReading === false;
  }

  protected override describeFailure(): string {
    return "could not be reached, or closed the connection";
  }
}

interface AnswerEvents {
  /** Bytes are wanted, or have arrived. */
  moves(): void;
  breaks(cause: Error): void;
  /** All bytes have arrived. */
  ends(): void;
  /** All bytes were read, or the reader has left. */
  leaves(): void;
}

/** The body of an answer. Destroying it before its end aborts the call, so that the upstream stops its work. */
class AnswerBody extends Readable {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #events: AnswerEvents;
  isReading = false;

  constructor(body: ReadableStream<Uint8Array> | null, events: AnswerEvents) {
    super();
    this.#reader = body?.getReader();
    this.#events = events;
  }

  override _read(): void {
    if (!this.isReading) void this.#pull();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#events.leaves();
    callback(error);
  }

  async #pull(): Promise<void> {
    this.isReading = true;
    this.#events.moves();
    try {
      const chunk = await this.#next();
      this.isReading = false;
      if (chunk) this.#events.moves();
      else this.#events.ends();
      this.push(chunk);
    } catch (cause) {
      this.#events.breaks(cause as Error);
    }
  }

  /** Null at the end. */
  async #next(): Promise<Buffer | null> {
    for (;;) {
      const read = await this.#reader?.read();
      if (!read?.value) return null;
      const { buffer, byteOffset, byteLength } = read.value;
      // Pushing an empty chunk asks for no further chunk.
      if (byteLength > 0) return Buffer.from(buffer, byteOffset, byteLength);
    }
  }
}

/** Removes what describes the encoded body: `fetch` has decoded it. Deno does so only if the request names no encoding. */
function headersOf({ headers }: Response): ports.ModelAnswer["headers"] {
  const cookies = headers.getSetCookie();
  const isDecoded = headers.has("content-encoding") && !("Deno" in globalThis);
  const all = [...headers].filter(([name]) => !(isDecoded && (name === "content-encoding" || name === "content-length")));
  return { ...Object.fromEntries(all), ...(cookies.length > 0 && { "set-cookie": cookies }) };
}
