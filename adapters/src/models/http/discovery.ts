import type { Readable } from "node:stream";
import { ports } from "@portico/core";
import type { Upstream } from "./upstream.ts";

/** How long a discovered list is believed. */
const FRESH_MS = 5 * 60_000;
const LIST_BYTES = 8 * 1024 * 1024;
/** More pages than any vendor has: a list that never ends is not followed for ever. */
const MOST_PAGES = 50;

/**
 * Reads the upstream's own list of models, following the pages of the Messages protocol, and remembers it for five minutes. Callers at
 * the same time share one reading. A list that can no longer be renewed is still believed, as long as there ever was one.
 */
export function createDiscovery(
  name: string,
  upstream: Upstream,
  request: { readonly path: string; readonly headers: Readonly<Record<string, string>> },
  clock: ports.Clock,
): (signal?: AbortSignal) => Promise<readonly string[]> {
  let known: { readonly models: readonly string[]; readonly at: number } | undefined;
  let reading: Promise<readonly string[]> | undefined;

  const read = async (): Promise<readonly string[]> => {
    const models: string[] = [];
    let after: string | undefined;
    for (let page = 0; page < MOST_PAGES; page++) {
      const path = after === undefined ? request.path : `${request.path}?after_id=${encodeURIComponent(after)}`;
      const answer = await upstream.request({ method: "GET", path, headers: request.headers }, undefined);
      const list = parseList(name, answer.status, await readText(answer.body));
      models.push(...list.models);
      if (!list.next) break;
      after = list.next;
    }
    known = { models, at: clock.now() };
    return models;
  };

  return async (signal) => {
    if (known && clock.now() - known.at < FRESH_MS) return known.models;
    reading ??= read().finally(() => {
      reading = undefined;
    });
    const stale = known;
    return untilAborted(stale ? reading.catch(() => stale.models) : reading, signal);
  };
}

function parseList(name: string, status: number, text: string): { models: string[]; next: string | undefined } {
  if (status !== 200) throw new ports.ModelUnreachable(`Provider "${name}" answered its list of models with status ${status}`);
  try {
    const body = JSON.parse(text) as { data?: { id?: unknown }[]; has_more?: unknown; last_id?: unknown };
    const models = (body.data ?? []).map((entry) => entry.id).filter((id) => typeof id === "string");
    return { models, next: body.has_more === true && typeof body.last_id === "string" ? body.last_id : undefined };
  } catch {
    throw new ports.ModelUnreachable(`Provider "${name}" answered with no list of models`);
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

/** One caller leaving does not end a reading that others wait for. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
