import type { Turn } from "./turn.ts";

/** Longer answers are not announced completely: the user can read them on the page. */
const SPOKEN_CHARACTERS = 600;

/** The announcement of the last turn for screen readers. It changes with the turn's state, not with every word. */
export function spokenProgress(turn: Turn | undefined, agentName: string): string {
  switch (turn?.state) {
    case "submitting":
      return "Sending";
    case "waiting":
      return "Sent. Waiting for its turn";
    case "running": {
      const asked = turn.pieces.find((piece) => piece.type === "tool" && piece.isWaiting && piece.result === undefined);
      if (asked?.type === "tool") return `${agentName} waits for your approval of ${asked.name}`;
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
      // Refusals and lost submissions have their own alerts.
      return "";
  }
}
