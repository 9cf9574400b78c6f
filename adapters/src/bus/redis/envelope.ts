/** A message on its way. */
export interface Envelope {
  /** The ID of the process that published it. */
  readonly from: string;
  /** Counts all messages of a process, so that receivers can drop those that arrive late. */
  readonly sequence: number;
  /** JSON. Undefined: messages may have been lost. */
  readonly text: string | undefined;
}

/** An envelope as Redis carries it. */
export function toWire({ from, sequence, text = "" }: Envelope): string {
  return `${from} ${sequence} ${text}`;
}

/** Undefined for anything else on the channel. */
export function fromWire(wire: string): Envelope | undefined {
  const found = /^(\w{1,64}) (\d{1,16}) /.exec(wire);
  if (!found) return undefined;
  const text = wire.slice(found[0].length);
  return { from: found[1]!, sequence: Number(found[2]), text: text === "" ? undefined : text };
}
