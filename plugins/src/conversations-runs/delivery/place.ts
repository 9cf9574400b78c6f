import { PLACE_CHARACTERS, PLACE_NAMED_TURNS, PLACE_TURNS } from "../limits.ts";

/** The position of a client in the events: it has some events of each listed turn, and all events of every other turn that had begun. */
export interface Place {
  /** The process that sent it. */
  readonly life: string;
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
export interface OpenTurn {
  readonly clientRequestId: string;
  readonly life: string;
  /** The turn's number among those that began in that process; 0 if it is unknown. */
  readonly number: number;
  /** Events that the client has. */
  readonly count: number;
}

/** The parts of a place. */
export interface PlaceFacts {
  readonly life: string;
  /** How many turns had begun in this process. */
  readonly begun: number;
  readonly open: readonly OpenTurn[];
  /** Of other processes. */
  readonly others?: Iterable<readonly [life: string, begun: number]>;
  readonly since?: number | undefined;
}

/** How a place lists a turn by its number. */
export const numberedKey = (life: string, number: number): string => `${life}#${number}`;

/**
 * A place as text, which travels with every event. A few turns are listed by `clientRequestId`. Many are listed by process and number, to stay
 * short. Turns that do not fit count as not begun: a client that comes back gets them from their beginning.
 */
export function formatPlace({ life, begun, open, others = [], since }: PlaceFacts): string {
  const areNamed = open.length <= PLACE_NAMED_TURNS;
  const counts = new Map(others);
  const listed: string[] = [];
  let [own, characters, isFull] = [begun, 0, false];
  // The oldest first. If not all fit, the first one that is left out shows how far the client has everything else.
  for (const turn of areNamed ? open : open.toSorted((a, b) => a.number - b.number)) {
    const number = turn.life === life ? `#${turn.number}` : numberedKey(turn.life, turn.number);
    const entry = `${areNamed || turn.number === 0 ? encodeURIComponent(turn.clientRequestId) : number}=${turn.count}`;
    characters += entry.length + 1;
    isFull ||= listed.length === PLACE_TURNS || characters > PLACE_CHARACTERS;
    if (!isFull) listed.push(entry);
    else if (turn.life === life) own = Math.min(own, Math.max(turn.number - 1, 0));
    else if (counts.has(turn.life)) counts.set(turn.life, Math.min(counts.get(turn.life)!, Math.max(turn.number - 1, 0)));
  }
  const rest = [...counts].map(([each, count]) => `${each}=${count}`);
  if (since !== undefined) rest.push(`@=${since}`);
  return `${life};${own};${listed.join()}${rest.length > 0 ? `;${rest.join()}` : ""}`;
}

/** Reads what a client presents. Undefined for text that `formatPlace` does not write. */
export function readPlace(text: string): Place | undefined {
  if (text.length > PLACE_CHARACTERS + OTHERS_CHARACTERS) return undefined;
  const [, life, count, listed, rest = ""] = /^(\w{1,32});(\d{1,15});([^;]*)(?:;(.*))?$/.exec(text) ?? [];
  if (life === undefined || count === undefined || listed === undefined) return undefined;
  const begun = new Map([[life, Number(count)]]);
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
    else numbered.set(numberedKey(where || life, Number(number)), Number(events));
  }
  return { life, begun, open, numbered, since };
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
