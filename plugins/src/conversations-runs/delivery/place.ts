import { PLACE_CHARACTERS, PLACE_NAMED_TURNS, PLACE_TURNS } from "../limits.ts";

/** Where a client is in what it is told: it has some of each turn that is listed, and all of every other turn that had begun. */
export interface Place {
  /** The process that counted `begun`. */
  readonly life: string;
  /** How many turns had begun in that process. */
  readonly begun: number;
  /** How many events the client has of a turn, by `clientRequestId`. */
  readonly open: ReadonlyMap<string, number>;
  /** The same by the turn's number in that process. */
  readonly numbered: ReadonlyMap<number, number>;
}

/** A turn of whose events a client has some. */
export interface OpenTurn {
  readonly clientRequestId: string;
  /** The turn's number among those that began in this process; 0 for a turn of an earlier process. */
  readonly number: number;
  /** Events that the client has. */
  readonly count: number;
}

/**
 * A place as text, which travels with every event. A few turns are listed by `clientRequestId`, which later processes know, too. Many are
 * listed by number, to stay short. Turns that do not fit count as not begun: a client that comes back gets them from their beginning.
 */
export function formatPlace(life: string, begun: number, open: readonly OpenTurn[]): string {
  const areNamed = open.length <= PLACE_NAMED_TURNS;
  const listed: string[] = [];
  let characters = 0;
  // The oldest first: of those that do not fit, the first tells how far the client has everything else.
  for (const { clientRequestId, number, count } of areNamed ? open : open.toSorted((a, b) => a.number - b.number)) {
    const entry = `${areNamed || number === 0 ? encodeURIComponent(clientRequestId) : `#${number}`}=${count}`;
    characters += entry.length + 1;
    if (listed.length === PLACE_TURNS || characters > PLACE_CHARACTERS)
      return `${life};${Math.min(begun, Math.max(number - 1, 0))};${listed.join()}`;
    listed.push(entry);
  }
  return `${life};${begun};${listed.join()}`;
}

/** Reads what a client presents. Undefined for text that `formatPlace` does not write. */
export function readPlace(text: string): Place | undefined {
  if (text.length > PLACE_CHARACTERS + 100) return undefined;
  const [, life, begun, listed] = /^(\w{1,32});(\d{1,15});(.*)$/.exec(text) ?? [];
  if (life === undefined || begun === undefined || listed === undefined) return undefined;
  const open = new Map<string, number>();
  const numbered = new Map<number, number>();
  for (const entry of listed === "" ? [] : listed.split(",")) {
    const [, number, key = "", count] = /^(?:#(\d{1,15})|([^=#]+))=(\d{1,15})$/.exec(entry) ?? [];
    const clientRequestId = decoded(key);
    if (count === undefined || clientRequestId === undefined) return undefined;
    if (number === undefined) open.set(clientRequestId, Number(count));
    else numbered.set(Number(number), Number(count));
  }
  return { life, begun: Number(begun), open, numbered };
}

function decoded(key: string): string | undefined {
  try {
    return decodeURIComponent(key);
  } catch {
    return undefined;
  }
}
