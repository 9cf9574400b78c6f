import type { Turn } from "./turn.ts";

/** An answer that is longer is not read out whole: it stands there to be read. */
const SPOKEN_CHARACTERS = 600;

/** What a screen reader says of the last turn. It changes with the turn's state, and not with every word. */
export function spokenProgress(turn: Turn | undefined, agentName: string): string {
  switch (turn?.state) {
    case "submitting":
      return "Sending";
    case "waiting":
      return "Sent. It waits for its turn";
    case "running": {
      const tool = turn.pieces.findLast((piece) => piece.type === "tool");
      return tool && tool.result === undefined ? `${agentName} calls ${tool.name}` : `${agentName} is answering`;
    }
    case "completed": {
      const said = turn.pieces.flatMap((piece) => (piece.type === "text" ? [piece.text] : [])).join(" ");
      return `${agentName} answered: ${said.slice(0, SPOKEN_CHARACTERS)}`;
    }
    case "interrupted":
      return `${agentName} was stopped`;
    case "failed":
      return "The turn failed";
    default:
      // Refusals and lost submissions are alerts of their own.
      return "";
  }
}
