import { RESUME_POINT_CHARACTERS, RESUME_POINT_NAMED_TURNS, RESUME_POINT_TURNS } from "../limits.ts";

/** The position of a client in the events: it has some events of each listed turn, and all events of every other turn that had begun. */
export interface ResumePoint {
  /** The process that sent it. */
  readonly processId: string;
  /** The number of turns that had begun in each process, as far as that process knew: its own turns, and those that its client received. */
  readonly begun: ReadonlyMap<string, number>;
  /** How many events the client has of a turn, by `clientRequestId`. */
  readonly open: ReadonlyMap<string, number>;
  /** The same by the turn's process and number (`numberedKey`). */
  readonly numbered: ReadonlyMap<string, number>;
  /** In milliseconds since 1970: the client does not get turns of other processes that had ended by then. */
  readonly since: number | undefined;
}

/** A turn of which a client has some events. */
export interface ListedTurn {
  readonly clientRequestId: string;
  readonly processId: string;
  /** The turn's number among those that began in that process; 0 if it is unknown. */
  readonly number: number;
  /** Events that the client has. */
  readonly count: number;
}

/** The parts of a resume point. */
export interface ResumePointParts {
  readonly processId: string;
  /** How many turns had begun in this process. */
  readonly begun: number;
  readonly open: readonly ListedTurn[];
  /** Of other processes. */
  readonly others?: Iterable<readonly [processId: string, begun: number]>;
  readonly since?: number | undefined;
}

/** How a resume point lists a turn by its number. */
export const numberedKey = (processId: string, number: number): string => `${processId}#${number}`;

/**
 * A resume point as text, which travels with every event. A few turns are listed by `clientRequestId`. Many are listed by process and number, to stay
 * short. Turns that do not fit count as not begun: a client that comes back gets them from their beginning.
 */
export function formatResumePoint({ processId, begun, open, others = [], since }: ResumePointParts): string {
  const areNamed = open.length <= RESUME_POINT_NAMED_TURNS;
  const counts = new Map(others);
  const listed: string[] = [];
  let [own, characters, isFull] = [begun, 0, false];
  // The oldest first. If not all fit, the first one that is left out shows how far the client has everything else.
  for (const turn of areNamed ? open : open.toSorted((a, b) => a.number - b.number)) {
    const number = turn.processId === processId ? `#${turn.number}` : numberedKey(turn.processId, turn.number);
    const entry = `${areNamed || turn.number === 0 ? encodeURIComponent(turn.clientRequestId) : number}=${turn.count}`;
    characters += entry.length + 1;
    isFull ||= listed.length === RESUME_POINT_TURNS || characters > RESUME_POINT_CHARACTERS;
    if (!isFull) listed.push(entry);
    else if (turn.processId === processId) own = Math.min(own, Math.max(turn.number - 1, 0));
    else if (counts.has(turn.processId))
      counts.set(turn.processId, Math.min(counts.get(turn.processId)!, Math.max(turn.number - 1, 0)));
  }
  const rest = [...counts].map(([each, count]) => `${each}=${count}`);
  if (since !== undefined) rest.push(`@=${since}`);
  return `${processId};${own};${listed.join()}${rest.length > 0 ? `;${rest.join()}` : ""}`;
}

/** Reads what a client presents. Undefined for text that `formatResumePoint` does not write. */
export function readResumePoint(text: string): ResumePoint | undefined {
  if (text.length > RESUME_POINT_CHARACTERS + OTHERS_CHARACTERS) return undefined;
  const [, processId, count, listed, rest = ""] = /^(\w{1,32});(\d{1,15});([^;]*)(?:;(.*))?$/.exec(text) ?? [];
  if (processId === undefined || count === undefined || listed === undefined) return undefined;
  const begun = new Map([[processId, Number(count)]]);
  let since: number | undefined;
  for (const entry of split(rest)) {
    const [, other, number] = /^(\w{1,32}|@)=(\d{1,15})$/.exec(entry) ?? [];
    if (other === undefined) return undefined;
    if (other === "@") since = Number(number);
    else begun.set(other, Number(number));
  }
  const open = new Map<string, number>();
  const numbered = new Map<string, number>();
  for (const entry of split(listed)) {
    const [, where, number, key = "", events] = /^(?:(\w{0,32})#(\d{1,15})|([^=#]+))=(\d{1,15})$/.exec(entry) ?? [];
    const clientRequestId = decoded(key);
    if (events === undefined || clientRequestId === undefined) return undefined;
    if (number === undefined) open.set(clientRequestId, Number(events));
    else numbered.set(numberedKey(where || processId, Number(number)), Number(events));
  }
  return { processId, begun, open, numbered, since };
}

/** More characters than the processes need from which one client receives events within minutes. */
const OTHERS_CHARACTERS = 4 * 1024;

function split(list: string): readonly string[] {
  return list === "" ? [] : list.split(",");
}

function decoded(key: string): string | undefined {
  try {
    return decodeURIComponent(key);
  } catch {
    return undefined;
  }
}
