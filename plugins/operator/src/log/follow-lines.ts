import { setImmediate } from "node:timers/promises";
import type { EventOf, ReconnectTime, Say } from "@portico/core";
import type { logContract } from "./contract.ts";
import { createLineFilter, LINES_AT_ONCE, type LineSource, type LogLine, type WantedLines } from "./lines.ts";
import { type ElsewhereQueue, nameOf, type ProcessName } from "./other-processes.ts";

/** A reader whose connection breaks connects again after this time. */
const RECONNECT_MS = 3_000;
/** Areas that a new reader is told of. */
const MOST_AREAS = 100;

type LogEvents = (typeof logContract)["follow"]["success"]["events"];
type LogEvent = EventOf<LogEvents> | ReconnectTime;

/** One reader of the log. */
export interface LineReader {
  readonly lines: LineSource;
  readonly process: ProcessName;
  /** Known areas, in addition to those of the lines. */
  readonly areas: readonly string[];
  /** The lines of other processes, if the reader wants them. */
  readonly elsewhere: ElsewhereQueue | undefined;
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
 * are dropped before it takes them, it gets their number. Lines of other processes have no id: the id is the place in the lines of this one.
 */
export async function* followLines(reader: LineReader): AsyncGenerator<LogEvent, void> {
  const { lines, process, areas: known, elsewhere, wanted, last, say, signal } = reader;
  const toLine = createLineFilter(wanted);
  const resumed = readPlace(reader);
  yield { retryMs: RECONNECT_MS };
  yield say["log:opened"]({ process, isResumed: resumed !== undefined, areas: await areasOf(lines, known) });
  const own = elsewhere && { process: nameOf(process) };
  let taken = resumed ?? (await beforeLast(lines, last, toLine));
  for (let looked = 1; !signal.aborted; looked++) {
    const hasOwn = taken < lines.newest;
    // By turns, so that no process with many lines keeps those of others back.
    const other = hasOwn && looked % 2 === 1 ? undefined : elsewhere?.take();
    if (other || !hasOwn) {
      if (!other) await eitherAfter(lines, taken, elsewhere, signal);
      else if ("missed" in other) yield say["log:missed"]({ lines: other.missed, process: other.from });
      else {
        const line = toLine(other.text);
        if (line) yield say["log:line"]({ ...line, process: other.from });
      }
      continue;
    }
    const missed = lines.oldest - taken - 1;
    if (missed > 0) {
      taken += missed;
      yield { ...say["log:missed"]({ lines: missed, ...own }), id: placeOf(process.id, taken) };
      continue;
    }
    const line = toLine(lines.at(++taken)!);
    if (line) yield { ...say["log:line"]({ ...line, ...own }), id: placeOf(process.id, taken) };
    else if (looked % LINES_AT_ONCE === 0) await setImmediate();
  }
}

/** Waits for a line of this process or of another one. */
async function eitherAfter(
  lines: LineSource,
  taken: number,
  elsewhere: ElsewhereQueue | undefined,
  signal: AbortSignal,
): Promise<void> {
  const come = new AbortController();
  const waiting = AbortSignal.any([signal, come.signal]);
  const both = [lines.after(taken, waiting), ...(elsewhere ? [elsewhere.after(waiting)] : [])].map((each) =>
    each.catch(() => {}),
  );
  await Promise.race(both);
  come.abort();
}

/** The known areas, and those of the kept lines, in alphabetical order. */
async function areasOf(lines: LineSource, known: readonly string[]): Promise<string[]> {
  const areas = new Set(known);
  for (let position = lines.newest; position >= lines.oldest && areas.size < MOST_AREAS; position--) {
    if (position % LINES_AT_ONCE === 0) await setImmediate();
    const text = lines.at(position);
    const area = text === undefined ? undefined : (JSON.parse(text) as LogLine)["area"];
    if (typeof area === "string") areas.add(area);
  }
  return [...areas].toSorted();
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
