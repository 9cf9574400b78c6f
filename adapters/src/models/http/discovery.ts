import type { Readable } from "node:stream";
import { orAborted, ports } from "@portico/core";
import type { Upstream } from "./upstream.ts";

/** How long a discovered list is cached. */
const FRESH_MS = 5 * 60_000;
/** Timeout of a reading with all its pages: callers wait for it. */
const READING_MS = 15_000;
/** How long an old list is used before the next attempt, so that an upstream that is down does not slow every call. */
const RETRY_MS = 30_000;
const LIST_BYTES = 8 * 1024 * 1024;
/** More pages than any vendor has. Limits an endless list. */
const MOST_PAGES = 50;

/** The models of a provider: their names, and what its list says of each. */
export interface DiscoveredModels {
  readonly names: readonly string[];
  /** By model: tokens of a request with its answer. Only models whose list entry says it. */
  readonly contextTokens: ReadonlyMap<string, number>;
}

/** Field names of services for the tokens that a model accepts. No protocol has a common one. */
const CONTEXT_FIELDS = [
  "max_input_tokens",
  "context_length",
  "max_model_len",
  "context_window",
  "max_context_length",
  "loaded_context_length",
];

interface Known {
  readonly models: DiscoveredModels;
  /** Time of the next reading. */
  readonly until: number;
}

/**
 * Reads the upstream's own list of models, with all pages of the Messages protocol, and caches it for five minutes. Concurrent
 * callers share one reading. If a renewal fails, the old list stays in use. Without an old list, the next caller tries again.
 * Throws ModelUnreachable, ModelTimeout or the signal's reason.
 */
export function createDiscovery(
  name: string,
  upstream: Upstream,
  { path: first, headers }: { readonly path: string; readonly headers: Readonly<Record<string, string>> },
  clock: ports.Clock,
): (signal?: AbortSignal) => Promise<DiscoveredModels> {
  let known: Known | undefined;
  let reading: Promise<DiscoveredModels> | undefined;

  const read = async (signal: AbortSignal): Promise<DiscoveredModels> => {
    const names = new Set<string>();
    const contextTokens = new Map<string, number>();
    let after: string | undefined;
    for (let page = 0; page < MOST_PAGES; page++) {
      const path = after === undefined ? first : `${first}?after_id=${encodeURIComponent(after)}`;
      const answer = await upstream.request({ method: "GET", path, headers }, signal);
      const list = parseList(name, answer.status, await readText(answer.body));
      for (const { id, tokens } of list.models) {
        names.add(id);
        if (tokens !== undefined) contextTokens.set(id, tokens);
      }
      if (!list.next) break;
      after = list.next;
    }
    return { names: Object.freeze([...names]), contextTokens };
  };

  const renew = async (): Promise<DiscoveredModels> => {
    const late = new AbortController();
    const timer = clock.after(READING_MS, () =>
      late.abort(new ports.ModelTimeout(`Provider "${name}" did not tell its models in time`)),
    );
    try {
      const models = await read(late.signal);
      known = { models, until: clock.now() + FRESH_MS };
      return models;
    } catch (error) {
      if (!known) throw error;
      known = { models: known.models, until: clock.now() + RETRY_MS };
      return known.models;
    } finally {
      timer.cancel();
      reading = undefined;
    }
  };

  return async (signal) => {
    signal?.throwIfAborted();
    if (known && clock.now() < known.until) return known.models;
    reading ??= renew();
    // If one caller leaves, a reading that others wait for continues.
    return orAborted(reading, signal);
  };
}

interface ListedModel {
  readonly id: string;
  readonly tokens: number | undefined;
}

function parseList(name: string, status: number, text: string): { models: ListedModel[]; next: string | undefined } {
  if (status !== 200) throw new ports.ModelUnreachable(`Provider "${name}" answered its list of models with status ${status}`);
  const body = parseObject(text);
  const entries: unknown = body?.["data"];
  if (!body || !Array.isArray(entries)) throw new ports.ModelUnreachable(`Provider "${name}" answered with no list of models`);
  const next = body["last_id"];
  return {
    models: entries.flatMap((entry: Readonly<Record<string, unknown>> | null) => {
      const id = entry?.["id"];
      return typeof id === "string" && id !== "" ? [{ id, tokens: contextOf(entry!) }] : [];
    }),
    next: body["has_more"] === true && typeof next === "string" ? next : undefined,
  };
}

/** The least of what an entry says: a server may have loaded a model with less than the model could take. */
function contextOf(entry: Readonly<Record<string, unknown>>): number | undefined {
  const said = CONTEXT_FIELDS.map((field) => entry[field]).filter(
    (value): value is number => typeof value === "number" && Number.isSafeInteger(value) && value > 0,
  );
  return said.length > 0 ? Math.min(...said) : undefined;
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

async function readText(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LIST_BYTES) {
      body.destroy();
      break;
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
