import type { ports } from "@portico/core";
import type { PlayedTurn } from "../turns/turn.ts";

/** An accepted background turn, as the engine keeps it. Nobody goes on with it: it has a run and a session, and no conversation. */
export interface AcceptedTurn extends PlayedTurn {
  readonly conversationId?: undefined;
  readonly toolIds: readonly string[];
  readonly origin: ports.TurnOrigin;
}
