import type { ports } from "@portico/core";

/** What the caller of an asked turn says: earlier messages, the oldest first, and the message that the agent answers. */
export type SaidToTurn = Pick<ports.AgentTurn, "history" | "input">;

/** What asked turns are told, by the id of their run. Written with the turn, and removed with its end: the receipt keeps only the prompt. */
export const openSaidToTurns = (records: ports.Records): ports.Collection<SaidToTurn> =>
  records.collection<SaidToTurn>({ name: "said-to-turns" });
