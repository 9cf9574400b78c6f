import type { Readable } from "node:stream";
import type { Clock, Timer } from "../ports/clock.ts";

/** The body is longer than its route allows. */
export class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
}

/** The body ended before it was complete: the caller left. */
export class BodyCut extends Error {
  override readonly name = "BodyCut";
}

/** No further bytes of the body arrived for too long, or the whole body took too long. */
export class BodySilent extends Error {
  override readonly name = "BodySilent";
}

/** The body was already read: the host has a body parser in front of the surface. */
export class BodyAlreadyRead extends Error {
  override readonly name = "BodyAlreadyRead";
}

/** Idle timeout of an upload. Slow uploads are allowed. */
export const BODY_SILENCE_MS = 60_000;
/** Time limit for a body that is held in memory. A caller that sends it more slowly would occupy the memory. */
export const BODY_WHOLE_MS = 300_000;

export interface BodyLimits {
  /** Bytes. One more byte is refused with BodyTooLarge, also if no length was declared. */
  readonly limit: number;
  /** Bytes that the head declares. A body that has arrived completely is then taken at once, as most are. */
  readonly declared?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly silenceMs?: number;
  /** Milliseconds for the whole body. Default: no limit. */
  readonly wholeMs?: number;
}

/**
 * Pass each chunk of a body to `take` as it arrives, and resolve when all chunks were taken. If `take` returns a promise, the
 * stream is paused until it settles. Rejects with BodyTooLarge, BodyCut, BodySilent, BodyAlreadyRead, or the error of `take`. The
 * stream is then paused, not destroyed, so that an answer can still be sent.
 */
export function eachChunk(body: Readable, limits: BodyLimits, take: (chunk: Buffer) => void | Promise<void>): Promise<void> {
  if (hasArrived(body, limits)) return takeEach(body, take);
  return new Promise((resolve, reject) => {
    let size = 0;
    let silence: Timer | undefined;
    let late: Timer | undefined;
    let settled = false;
    let taking: Promise<void> | undefined;
    let ended = false;
    const settle = (error?: unknown) => {
      if (settled) return;
      settled = true;
      silence?.cancel();
      late?.cancel();
      body.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onError);
      if (error === undefined) return resolve();
      body.pause();
      body.on("error", ignore);
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limits.limit) return settle(new BodyTooLarge(`The body is longer than ${limits.limit} bytes`));
      silence?.refresh();
      try {
        const pending = take(chunk);
        if (pending === undefined) return;
        body.pause();
        taking = pending.then(
          () => {
            taking = undefined;
            if (settled) return;
            if (ended) return settle();
            silence?.refresh();
            body.resume();
          },
          (error: unknown) => settle(error),
        );
      } catch (error) {
        settle(error);
      }
    };
    const watch = () => {
      silence = limits.clock?.after(limits.silenceMs ?? BODY_SILENCE_MS, () => {
        // While `take` pauses the stream, the silence is not the caller's.
        if (taking) watch();
        else settle(new BodySilent("The body stopped arriving"));
      });
    };
    const onEnd = () => {
      ended = true;
      if (!taking) settle();
    };
    const onClose = () => {
      if (!ended) settle(new BodyCut("The body ended before it was complete"));
    };
    const onError = (cause: Error) => settle(new BodyCut("The body ended before it was complete", { cause }));
    if (body.readableEnded) return settle(new BodyAlreadyRead("The body was read before it came here"));
    if (body.destroyed) return settle(new BodyCut("The body ended before it was complete"));
    body.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onError);
    watch();
    if (limits.wholeMs !== undefined)
      late = limits.clock?.after(limits.wholeMs, () => settle(new BodySilent("The body took too long to arrive")));
  });
}

/** A whole body in memory, for bodies with a small limit. It must arrive within five minutes. Rejects as `eachChunk` does. */
export async function readBody(body: Readable, limits: BodyLimits): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await eachChunk(body, { wholeMs: BODY_WHOLE_MS, ...limits }, (chunk) => void chunks.push(chunk));
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

/**
 * The whole body, if it has arrived with its head, as most bodies have. It is then taken from the stream. Undefined if bytes are missing, if no
 * length was declared, or if the body is too long: `eachChunk` reads it then.
 */
export function takeArrived(body: Readable, limits: BodyLimits): Buffer | undefined {
  if (!hasArrived(body, limits)) return undefined;
  body.on("error", ignore);
  const chunks: Buffer[] = [];
  for (let chunk: Buffer | null; (chunk = body.read() as Buffer | null) !== null;) chunks.push(chunk);
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

function hasArrived(body: Readable, { limit, declared = 0 }: BodyLimits): boolean {
  return declared > 0 && declared <= limit && body.readableLength === declared && !body.destroyed;
}

async function takeEach(body: Readable, take: (chunk: Buffer) => void | Promise<void>): Promise<void> {
  body.on("error", ignore);
  // Node returns everything at once, Deno one chunk at a time.
  for (let chunk: Buffer | null; (chunk = body.read() as Buffer | null) !== null;) await take(chunk);
}

function ignore(): void {}
