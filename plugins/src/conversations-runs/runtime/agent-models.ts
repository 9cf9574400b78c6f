import { defineAdapter, isStoreAway, later, ports, ServiceError } from "@portico/core";
import {
  type AnswerPiece,
  createProvider,
  type FinishReason,
  type ModelErrorKind,
  type ModelQuestion,
  ModelRefusal,
} from "@portico/core/model-protocols";
import type { WaitingCall } from "../asked/followed-turn.ts";
import { AGENTS_PROVIDER } from "../config.ts";
import { questionToTurn } from "../asked/question-to-turn.ts";
import { TurnFailed } from "../turns/turn-failed.ts";
import type { UserMessage } from "../turns/user-message.ts";
import { type AskedEnd, type AskedEvent, type AskedTurns, askedTurnsPort } from "./asked-turns.ts";

/** Options of `agentModels`. */
export interface AgentModelsOptions {
  /** The user of the turns. */
  readonly userId: string;
  /** The address where a person decides about the calls of a run, for callers. Default: unknown, and the call of the agent service is told. */
  readonly approvalsUrl?: (runId: string) => string | undefined;
}

/**
 * The provider `agents`: each agent without a fault in its `agent.json` is a model. A call is a turn of the agent. Tools of the agent run inside, and
 * the answer has its text and reasoning. Tools of the request are refused.
 */
export const agentModels = defineAdapter({
  name: "models/agents",
  port: ports.models,
  // Loaded late, because turns need models.
  needs: { asked: later(askedTurnsPort), agents: ports.agents, clock: ports.clock, ids: ports.ids },
  open: ({ asked, agents, clock, ids }, options: AgentModelsOptions): ports.ModelProvider =>
    createProvider(
      {
        id: AGENTS_PROVIDER,
        servesAgents: true,
        takes: ["images", "documents"],
        // Limits of the turn end it.
        silenceMs: Infinity,
        async models() {
          const all = await agents.list({ withGit: false }).catch(orUnreachable);
          return all.filter(({ metadataError }) => metadataError === undefined).map(({ id }) => id);
        },
        answer: (question, signal) => answer(asked(), question, options, signal),
      },
      { clock, ids },
    ),
});

async function* answer(
  asked: AskedTurns,
  question: ModelQuestion,
  { userId, approvalsUrl }: AgentModelsOptions,
  signal: AbortSignal,
): AsyncGenerator<AnswerPiece> {
  const { dropped, ...said } = questionToTurn(question);
  if (dropped.length > 0) yield { type: "dropped", fields: dropped };
  yield { type: "start", model: question.model };
  const words = new Words();
  try {
    const asking = { ...said, agentId: question.model, userId, origin: { origin: "model", displayName: question.model } };
    for await (const event of asked.ask(asking, signal)) {
      if (event.type === "accepted") words.runId = event.runId;
      else if (event.type === "message") yield* words.of(event.message);
      else if (event.type === "ended") yield* words.ended(event.end);
      else {
        yield* words.whole(waitingText(words.runId, event.calls, approvalsUrl?.(words.runId)));
        yield { type: "finish", reason: "end" };
        return;
      }
    }
  } catch (error) {
    signal.throwIfAborted();
    throw toRefusal(error);
  }
}

function orUnreachable(error: unknown): never {
  if (!(error instanceof ports.AgentsUnavailable)) throw error;
  throw new ports.ModelUnreachable("The agents cannot be read now", { cause: error });
}

type Message = Extract<AskedEvent, { type: "message" }>["message"];

/** The words of one answer. Texts of different messages are paragraphs. */
class Words {
  runId = "";
  #last: string | undefined;
  #isThinking = false;
  #hasCalledTool = false;

  *of({ id, type, delta = "", content }: Message): Generator<AnswerPiece> {
    if (type === "thinking") {
      this.#isThinking = true;
      yield { type: "thinking", text: delta };
    } else if (type === "text") yield* this.#text(id, delta);
    else if (type === "delivery") yield* this.#text(id, textOf(content as UserMessage));
    else if (type === "tool_call") this.#hasCalledTool = true;
  }

  /** A message of its own. */
  *whole(text: string): Generator<AnswerPiece> {
    yield* this.#text("", text);
  }

  *ended({ status, reason, output, failure, ...end }: AskedEnd): Generator<AnswerPiece> {
    if (status === "completed") {
      // An engine may answer without having said anything.
      if (this.#last === undefined && output !== "") yield* this.whole(output);
      yield { type: "usage", usage: usageOf(end) };
      yield { type: "finish", reason: FINISH[reason ?? ""] ?? "end" };
      return;
    }
    const kind = KINDS[failure?.code ?? reason ?? ""] ?? "upstream";
    const what = failure?.message ?? (status === "failed" ? "The turn failed" : "The turn was stopped");
    throw new ModelRefusal(kind, `${what} (${failure?.code ?? reason}, run ${this.runId})`, {
      // Tools would run twice.
      ...(this.#hasCalledTool && { isRepeatable: false }),
    });
  }

  *#text(id: string, text: string): Generator<AnswerPiece> {
    if (this.#isThinking) yield { type: "thinking-signature", signature: "" };
    this.#isThinking = false;
    if (this.#last !== undefined && this.#last !== id) yield "\n\n";
    this.#last = id;
    yield text;
  }
}

const FINISH: Readonly<Record<string, FinishReason>> = {
  max_turns: "length",
  max_tokens: "length",
  refusal: "refusal",
  content_filter: "refusal",
};

/** By the code of the failure, or the reason of the interruption. */
const KINDS: Readonly<Record<string, ModelErrorKind>> = {
  model_overloaded: "overloaded",
  system_suspension: "overloaded",
  process_restart: "overloaded",
  model_timeout: "timeout",
  time_limit: "timeout",
  limit_reached: "rate-limit",
  internal_error: "internal",
};

function usageOf({ usage, cachedInputTokens: cacheRead = 0 }: Pick<AskedEnd, "usage" | "cachedInputTokens">) {
  const input = usage?.inputTokens === undefined ? undefined : Math.max(0, usage.inputTokens - cacheRead);
  return { input, output: usage?.outputTokens, ...(cacheRead > 0 && { cacheRead }) };
}

function textOf({ message, text = "" }: UserMessage): string {
  return typeof message === "string" ? message : text || JSON.stringify(message);
}

function waitingText(runId: string, calls: readonly WaitingCall[], url: string | undefined): string {
  const names = calls.map(({ name, callId }) => `${name} (${callId})`).join(", ");
  const where = url ?? `POST /api/runs/${runId}/approvals/${calls[0]?.callId ?? "CALL_ID"} of the agent service`;
  return `A person must approve this call of a tool before I can go on: ${names}. Decide here: ${where}. Then I go on without this request, and the result is in the run ${runId}.`;
}

/** The error for a caller. */
function toRefusal(error: unknown): unknown {
  if (error instanceof TurnFailed) return new ModelRefusal("timeout", error.message, { cause: error });
  if (isStoreAway(error) || error instanceof ports.AgentsUnavailable)
    return new ModelRefusal("overloaded", "The turn could not be accepted now", { cause: error });
  if (!ServiceError.is(error)) return error;
  const seconds = Number(error.headers["retry-after"]);
  const kind = error.code === "unknown_agent" ? "not-found" : "rate-limit";
  return new ModelRefusal(kind, error.message, {
    cause: error,
    ...(seconds > 0 && { retryAfterMs: seconds * 1000 }),
  });
}
