import { isStoreAway, maxCharacters, orAborted, type ports, ServiceError } from "@portico/core";
import type { AskedEvent, AskedTurns } from "@portico/plugins/conversations-runs/asked-turns";
import * as v from "valibot";
import type { ToolAnswer, ToolCall, Tools } from "../server/tool-server.ts";

export interface AgentToolsGiven {
  readonly asked: AskedTurns;
  readonly agents: ports.Agents;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly approvalsUrl: (runId: string) => string | undefined;
}

const MESSAGE_CHARACTERS = 100_000;
/** Texts come in small pieces. Clients are told of them at most this often. */
const TOLD_MS = 1000;

const toolArguments = v.strictObject({ message: v.pipe(v.string(), v.nonEmpty(), maxCharacters(MESSAGE_CHARACTERS)) });
const INPUT_SCHEMA = {
  type: "object",
  properties: {
    message: {
      type: "string",
      minLength: 1,
      maxLength: MESSAGE_CHARACTERS,
      description: "What the agent is asked. It knows no earlier message.",
    },
  },
  required: ["message"],
  additionalProperties: false,
};

/** Agents as tools: a call is a turn of the caller's user, without a conversation. */
export function agentTools(given: AgentToolsGiven): Tools<ports.Caller> {
  const { agents, log } = given;
  return {
    async list() {
      const all = await agents.list({ withGit: false });
      return all
        .filter(isOffered)
        .map(({ id, definition: { name, description } }) => ({
          ...{ name: id, title: name, inputSchema: INPUT_SCHEMA },
          description: description === undefined || description === "" ? `Asks the agent ${name}` : description,
        }))
        .toSorted((one, other) => (one.name < other.name ? -1 : 1));
    },
    async call(call) {
      const agent = await agents.find(call.name);
      if (!agent || !isOffered(agent)) return undefined;
      const { userId } = call.who;
      if (userId === undefined) return { text: "This token has no user: use the token of a user", isError: true };
      const parsed = v.safeParse(toolArguments, call.arguments);
      if (!parsed.success) {
        const places = parsed.issues.map((issue) => `\n${v.getDotPath(issue) ?? "(arguments)"}: expected ${issue.expected}`);
        return { text: `The arguments do not match the tool's schema${places.join("")}`, isError: true };
      }
      const turn: Turn = { userId, agentId: agent.id, message: parsed.output.message, runId: undefined };
      const playing = play(given, turn, call);
      try {
        return await orAborted(playing, call.over);
      } catch (error) {
        // The answer does not wait for its end.
        playing.catch(
          (late: unknown) =>
            call.cancelled.aborted || log.warn("A turn that an MCP client began failed", { agent: agent.id }, late),
        );
        if (call.cancelled.aborted) return { text: "The turn was cancelled", isError: true };
        if (call.over.aborted)
          return { text: `The service stops before the turn has ended. ${readAt(turn.runId)}`, isError: true };
        return refused(error);
      }
    },
  };
}

interface Turn {
  readonly userId: string;
  readonly agentId: string;
  readonly message: string;
  /** Set once the turn is durable. */
  runId: string | undefined;
}

/** Plays a turn until it has ended or waits for a person, and tells its progress. It goes on when its caller has left without cancelling. */
async function play(
  { asked, clock, approvalsUrl }: AgentToolsGiven,
  turn: Turn,
  { cancelled, progress }: Pick<ToolCall<ports.Caller>, "cancelled" | "progress">,
): Promise<ToolAnswer> {
  const { userId, agentId, message } = turn;
  const asking = {
    ...{ agentId, userId, prompt: message, history: [], input: [{ type: "text" as const, text: message }] },
    origin: { origin: "mcp", displayName: agentId },
  };
  let told = 0;
  let toldAt = 0;
  let characters = 0;
  for await (const event of asked.ask(asking, cancelled)) {
    if (event.type === "accepted") turn.runId = event.runId;
    else if (event.type === "waiting") return waiting(turn.runId, event.calls, approvalsUrl);
    else if (event.type === "ended") return ended(turn.runId, event.end);
    else {
      const { type, content, delta = "" } = event.message;
      if (type === "tool_call")
        await progress({ progress: ++told, message: `Calls ${(content as { readonly name: string }).name}` });
      if (type !== "text") continue;
      characters += delta.length;
      const now = clock.now();
      if (now - toldAt < TOLD_MS) continue;
      toldAt = now;
      await progress({ progress: ++told, message: `Answers: ${characters} characters so far` });
    }
  }
  throw new TypeError("A turn ended without its last event");
}

type Waiting = Extract<AskedEvent, { type: "waiting" }>["calls"];
type End = Extract<AskedEvent, { type: "ended" }>["end"];

function waiting(runId: string | undefined, calls: Waiting, approvalsUrl: AgentToolsGiven["approvalsUrl"]): ToolAnswer {
  const names = calls.map(({ name }) => name).join(", ");
  const where = approvalsUrl(runId!) ?? `/api/runs/${runId}/approvals of the agent service`;
  return {
    text: `Run ${runId} waits for a person, who has to approve a call of ${names}. The person decides at ${where}. The run goes on then.`,
  };
}

function ended(runId: string | undefined, { status, reason, output, failure }: End): ToolAnswer {
  if (status === "completed") return { text: output };
  const why = failure ? `${failure.code}: ${failure.message}` : reason;
  return { text: `Run ${runId} is ${status}: ${why}\n\n${output}`.trimEnd(), isError: true };
}

function refused(error: unknown): ToolAnswer {
  if (ServiceError.is(error)) return { text: error.message, isError: true };
  if (isStoreAway(error)) return { text: "The turn could not be accepted now: try again later", isError: true };
  throw error;
}

function readAt(runId: string | undefined): string {
  return runId === undefined ? "" : `Read it at /api/runs/${runId}/receipt of the agent service`;
}

function isOffered({ definition, metadataError }: ports.Agent): boolean {
  return definition.mcp === true && metadataError === undefined;
}
