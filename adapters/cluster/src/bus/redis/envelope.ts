import { ports } from "@portico/core";

/** A message on its way. */
export interface Envelope {
  /** The ID of the process that published it. */
  readonly from: string;
  /** Counts all messages of a process, so that receivers can drop those that arrive late, or again. */
  readonly sequence: number;
  /** When it was published, in milliseconds since 1970. */
  readonly at: number;
  /** JSON. Undefined: messages may have been lost. */
  readonly text: string | undefined;
}

/** No signed envelope is longer. A character of its message has at least one byte, and the rest is shorter than 200 characters. */
export const MOST_CHARACTERS = ports.BUS_MESSAGE_BYTES + 200;

/** An envelope as it is signed. */
export function toWire({ from, sequence, at, text = "" }: Envelope): string {
  return `${from} ${sequence} ${at} ${text}`;
}

/** Undefined for any other text. */
export function fromWire(wire: string): Envelope | undefined {
  const found = /^(\w{1,64}) (\d{1,16}) (\d{1,16}) /.exec(wire);
  if (!found) return undefined;
  const text = wire.slice(found[0].length);
  return { from: found[1]!, sequence: Number(found[2]), at: Number(found[3]), text: text === "" ? undefined : text };
}
