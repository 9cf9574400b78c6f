import { ports } from "@portico/core";
import * as v from "valibot";
import { readAttachment, readAttachmentDefinition } from "./read-attachment.ts";
import type { TurnRoom } from "./shown-files.ts";
import type { PlayedTurn } from "./turn.ts";
import { readUserMessage, type UserMessage, userMessageArguments } from "./user-message.ts";

/** Starts a run of another agent for a turn. Rejects with an Error whose message the model may read, or with the signal's reason. */
export type Delegate = (
  from: PlayedTurn,
  task: { readonly agentId: string; readonly prompt: string; readonly mode: "wait" | "background" },
  signal: AbortSignal,
) => Promise<string>;

const delegateArguments = v.strictObject({
  agentId: v.pipe(v.string(), v.nonEmpty()),
  prompt: v.pipe(v.string(), v.nonEmpty()),
  mode: v.optional(v.picklist(["wait", "background"]), "wait"),
});

/** Tools that belong to a turn. */
export const builtInDefinitions: readonly ports.ToolDefinition[] = [
  {
    id: "SendUserMessage",
    name: "SendUserMessage",
    description: "Shows the user a message at once, while you go on working.",
    inputSchema: userMessageArguments,
    riskLevel: "low",
    requiresConfirmation: false,
    idempotent: false,
  },
  {
    id: "DelegateToAgent",
    name: "DelegateToAgent",
    description: "Gives another agent a task. With mode `wait` you get its answer; with `background` it works on its own.",
    inputSchema: {
      type: "object",
      properties: {
        agentId: { type: "string", minLength: 1 },
        prompt: { type: "string", minLength: 1 },
        mode: { type: "string", enum: ["wait", "background"] },
      },
      required: ["agentId", "prompt"],
      additionalProperties: false,
    },
    riskLevel: "medium",
    requiresConfirmation: false,
    idempotent: false,
    // Tasks that an answer delegates are meant to be worked on at once.
    concurrent: true,
  },
  readAttachmentDefinition,
];

/** Tools that belong to a turn: they speak to its user, and begin turns of other agents (open points 3 and 10). */
export function builtInTools(given: {
  readonly turn: PlayedTurn;
  readonly files: ports.UserFiles | undefined;
  readonly room: TurnRoom;
  /** Resolves when readers can find the message. */
  readonly deliver: (message: UserMessage) => void | Promise<void>;
  readonly delegate: Delegate;
}): ports.ToolSource {
  const { turn, files, room, deliver, delegate } = given;
  return {
    id: "turn",
    list: async () => builtInDefinitions,
    async call({ toolId, arguments: args }, signal) {
      signal.throwIfAborted();
      switch (toolId) {
        case "SendUserMessage": {
          const message = readUserMessage(args);
          await deliver(message);
          return textResult(message.message === undefined ? "Shown to the user as plain text" : "Shown to the user");
        }
        case "DelegateToAgent": {
          const parsed = v.safeParse(delegateArguments, args);
          if (!parsed.success) throw new ports.ToolArgumentsInvalid("expected agentId, prompt and mode");
          try {
            return textResult(await delegate(turn, parsed.output, signal));
          } catch (error) {
            signal.throwIfAborted();
            if (error instanceof DelegationRefused) return { ...textResult(error.message), isError: true };
            throw error;
          }
        }
        case "ReadAttachment":
          return readAttachment({ files, userId: turn.userId, room }, args, signal);
        default:
          throw new ports.ToolNotFound(`There is no tool "${toolId}" here`);
      }
    },
  };
}

/** Why a task was not given to another agent, in words for the model. */
export class DelegationRefused extends Error {
  override readonly name = "DelegationRefused";
}

function textResult(text: string): ports.ToolResult {
  return { content: [{ type: "text", text }], isError: false };
}
