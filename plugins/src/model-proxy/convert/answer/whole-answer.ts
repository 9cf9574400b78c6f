import { AnswerFailed } from "../answer-failed.ts";
import type { FinishReason, ModelEvent, Usage } from "../model-events.ts";
import { type ContentBlock, ContentBlocks } from "./content-blocks.ts";
import { mergeUsage } from "./usage.ts";

/** The content of all events of an answer, for the writers of whole answers. */
export interface WholeAnswer {
  readonly blocks: readonly ContentBlock[];
  readonly usage: Usage | undefined;
  readonly reason: FinishReason;
  readonly stopSequence: string | undefined;
}

/**
 * Collects the events of a whole answer.
 *
 * @throws AnswerFailed if the answer broke or has no end.
 */
export function gatherAnswer(events: readonly ModelEvent[]): WholeAnswer {
  const blocks = new ContentBlocks();
  let usage: Usage | undefined;
  for (const event of events) {
    if (event.type === "error") throw new AnswerFailed(event.error);
    if (event.type === "start" || event.type === "usage") usage = mergeUsage(usage, event.usage);
    else if (event.type !== "finish") blocks.add(event);
    else return { blocks: blocks.list, usage, reason: event.reason, stopSequence: event.stopSequence };
  }
  throw new AnswerFailed({ kind: "upstream", message: "The provider's answer has no end." });
}
