import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type Adapter, type ports, Secret } from "@portico/core";
import { type FakeUpstream, type FakeUpstreamOptions, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { openAdapter } from "../open-adapter.ts";

/** What the suite asks a provider to be. An adapter without an upstream looks at none of it. */
export interface ProviderSetting {
  readonly id: string;
  readonly type: string;
  /** Where the suite's own upstream listens: everything before `/messages`, `/chat/completions` and `/models`. */
  readonly baseUrl: string;
  readonly credential: Secret;
  /** Headers of the provider's own, stronger than a caller's. */
  readonly headers: Readonly<Record<string, string>>;
  readonly models: readonly string[] | "discover";
  readonly timeouts: {
    readonly connectMs: number;
    readonly headersMs: number;
    readonly idleMs: number;
  };
}

/** The adapter under test, and the clock by which it counts. */
export interface ModelsUnderTest {
  readonly adapter: Adapter<typeof ports.models>;
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
  /** Resolves when `ms` milliseconds have passed on the clock by which the adapter counts its time-outs. */
  pass(ms: number): Promise<void>;
}

/** Makes the adapter of one provider with these settings. */
export type MakeModels = (setting: ProviderSetting) => ModelsUnderTest | Promise<ModelsUnderTest>;

/** One provider, opened alone, in front of an upstream that does what the test scripts. */
export interface Subject {
  readonly provider: ports.ModelProvider;
  readonly upstream: FakeUpstream;
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
  /** Send a call; without a body the sample request of the provider's protocol, without a signal one that stays quiet. */
  send(call?: Partial<ports.ModelCall>, signal?: AbortSignal): Promise<ports.ModelAnswer>;
}

/** Options of a subject: settings of its provider, and of its upstream. */
export interface SubjectOptions extends FakeUpstreamOptions {
  readonly setting?: Partial<ProviderSetting>;
}

/** Opens one subject; `createSubjects` closes it. */
export type OpenSubject = (options?: SubjectOptions) => Promise<Subject>;

/** Found in nothing that a caller gets to read. */
export const CREDENTIAL = "sk-conformance-0123456789abcdef";
/** Value of a secret header of the provider: found in nothing that a caller gets to read. */
export const HEADER_SECRET = "conformance-header-secret-42";
/** The time-outs of a subject, on the clock that `pass` moves. */
export const TIMEOUTS = { connectMs: 5_000, headersMs: 1_000, idleMs: 1_000 };

/** Opens subjects for one test after the other; `close` undoes what the test opened. */
export function createSubjects(make: MakeModels): {
  readonly open: OpenSubject;
  close(): Promise<void>;
} {
  const undo: (() => Promise<void>)[] = [];
  return {
    async open({ setting = {}, ...options } = {}) {
      const upstream = await startFakeUpstream(options);
      undo.push(upstream.close);
      const { adapter, others, pass } = await make({
        id: "main",
        type: "conformance",
        baseUrl: upstream.baseUrl,
        credential: new Secret(CREDENTIAL),
        headers: { "x-vendor-token": HEADER_SECRET },
        models: ["echo-large", "echo-small"],
        timeouts: TIMEOUTS,
        ...setting,
      });
      const { port: provider, close } = await openAdapter(adapter, others);
      undo.push(close);
      const send: Subject["send"] = (call = {}, signal = new AbortController().signal) =>
        provider.send(
          {
            headers: { "content-type": "application/json" },
            query: "",
            body: sampleRequest(provider),
            ...call,
          },
          signal,
        );
      return { provider, upstream, pass, close, send };
    },
    async close() {
      for (const step of undo.splice(0).reverse()) await step();
    },
  };
}

/** A small valid request in the provider's protocol. */
export function sampleRequest({ protocol }: Pick<ports.ModelProvider, "protocol">, more: object = {}): Buffer {
  const common = {
    model: "echo-large",
    messages: [{ role: "user", content: "hello" }],
  };
  return Buffer.from(
    JSON.stringify({
      ...common,
      ...(protocol === "messages" && { max_tokens: 256 }),
      ...more,
    }),
  );
}

/** A body that gives what it is fed, when it is fed: `push(null)` ends it. */
export function fedBody(...first: readonly (string | Uint8Array)[]): Readable {
  const body = new Readable({ read() {} });
  // As with every stream, its creator handles its errors.
  body.on("error", () => {});
  for (const chunk of first) body.push(chunk);
  return body;
}

/** A body of that many bytes, made while it is read, which counts how many were taken. */
export function countedBody(bytes: number): {
  readonly body: Readable;
  taken(): number;
} {
  const chunk = Buffer.alloc(64 * 1024, "a");
  let taken = 0;
  const body = new Readable({
    read() {
      const next = chunk.subarray(0, Math.min(chunk.length, bytes - taken));
      taken += next.length;
      this.push(next.length > 0 ? next : null);
    },
  });
  body.on("error", () => {});
  return { body, taken: () => taken };
}

/** All bytes of a body. */
export async function readBytes(body: Readable): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body as AsyncIterable<unknown>) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("The body of an answer gives bytes");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Reads an answer piece by piece. */
export function pieces(body: Readable): () => Promise<string> {
  const iterator = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  return async () => (await iterator.next()).value?.toString("utf8") ?? "";
}

/**
 * The number, once it no longer changes. On a slow machine it may be read too early; a test that expects a small number still
 * holds.
 */
export async function standstill(read: () => number): Promise<number> {
  let last = read();
  for (let quiet = 0; quiet < 20;) {
    await sleep(5);
    const now = read();
    quiet = now === last ? quiet + 1 : 0;
    last = now;
  }
  return last;
}

/** What a promise has come to so far, for asking while it may still be open. */
export function watched(promise: Promise<unknown>): () => "open" | "resolved" | "rejected" {
  let state: "open" | "resolved" | "rejected" = "open";
  promise.then(
    () => (state = "resolved"),
    () => (state = "rejected"),
  );
  return () => state;
}

/** What a promise is rejected with; undefined when it is not. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return error;
  }
}
