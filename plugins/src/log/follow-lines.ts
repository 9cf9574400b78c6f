import { setImmediate } from "node:timers/promises";
import type { EventOf, ReconnectTime, Say } from "@portico/core";
import type { LineSource } from "./config.ts";
import type { logContract } from "./contract.ts";
import { createLineFilter, type LogLine, type WantedLines } from "./line-filter.ts";
import { LINES_AT_ONCE, RECONNECT_MS } from "./limits.ts";

type LogEvents = (typeof logContract)["follow"]["success"]["events"];
type LogEvent = EventOf<LogEvents> | ReconnectTime;

/** One reader of the log. */
export interface LineReader {
  readonly lines: LineSource;
  readonly process: { readonly id: string; readonly host: string; readonly pid: number };
  readonly wanted: WantedLines;
  /** How many earlier lines come first, for a reader that does not resume. */
  readonly last: number;
  /** The header `Last-Event-ID`. */
  readonly lastEventId: string | undefined;
  readonly say: Say<LogEvents>;
  readonly signal: AbortSignal;
}

/**
 * The events of one reader: earlier lines, then each new line. It ends when the signal aborts. The reader takes one event at a time. If lines
 * are dropped before it takes them, it gets their number.
 */
export async function* followLines(reader: LineReader): AsyncGenerator<LogEvent, void> {
  const { lines, process, wanted, last, say, signal } = reader;
  const toLine = createLineFilter(wanted);
  const resumed = readPlace(reader);
  yield { retryMs: RECONNECT_MS };
  yield say["log:opened"]({ process, isResumed: resumed !== undefined });
  let taken = resumed ?? (await beforeLast(lines, last, toLine));
  for (let looked = 1; !signal.aborted; looked++) {
    if (taken >= lines.newest) {
      await lines.after(taken, signal).catch(() => {});
      continue;
    }
    const missed = lines.oldest - taken - 1;
    if (missed > 0) {
      taken += missed;
      yield { ...say["log:missed"]({ lines: missed }), id: placeOf(process.id, taken) };
      continue;
    }
    const line = toLine(lines.at(++taken)!);
    if (line) yield { ...say["log:line"](line), id: placeOf(process.id, taken) };
    else if (looked % LINES_AT_ONCE === 0) await setImmediate();
  }
}

/** The position before the newest `count` wanted lines. */
async function beforeLast(lines: LineSource, count: number, toLine: (line: string) => LogLine | undefined): Promise<number> {
  let position = lines.newest;
  for (let found = 0; found < count; position--) {
    const line = lines.at(position);
    if (line === undefined) break;
    if (toLine(line)) found++;
    if (position % LINES_AT_ONCE === 0) await setImmediate();
  }
  return position;
}

function placeOf(process: string, position: number): string {
  return `${process}:${position}`;
}

/** The position that the reader has read. Undefined without an id, for an invalid id, and for an id of another process. */
function readPlace({ lastEventId, process, lines }: LineReader): number | undefined {
  const [, id, position] = /^([^:]*):(0|[1-9]\d{0,14})$/.exec(lastEventId ?? "") ?? [];
  if (id !== process.id || Number(position) > lines.newest) return undefined;
  return Number(position);
}
