import { orAborted, ports } from "@portico/core";
import { agentErrors } from "../errors.ts";
import { LISTED_PROMPTS, PROMPTS_WAIT_MS } from "../limits.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

type Given = Pick<ConversationServices, "agents" | "tools">;

/** Lists the prompts that an agent's `agent.json` names and its sources have for the caller. A source that is away does not fail the list. */
export function listPrompts({ agents, tools }: Given): ConversationHandlers["prompts"] {
  return async ({ params, who, signal }) => {
    const named = await promptsOf(agents, params.id);
    const limited = AbortSignal.any([signal, AbortSignal.timeout(PROMPTS_WAIT_MS)]);
    const sources = tools.filter(({ owns, listPrompts: list }) => list && named.some((id) => owns?.(id)));
    const lists = await Promise.all(
      sources.map(async (source) => {
        try {
          const list = await orAborted(source.listPrompts!(limited, { userId: who.userId }), limited);
          return { prompts: list.filter(({ id }) => isNamed(named, id)) };
        } catch (error) {
          signal.throwIfAborted();
          const code = error instanceof ports.ToolsNotConnected ? ("connect_again" as const) : ("unavailable" as const);
          return { prompts: [], away: { sourceId: source.id, code } };
        }
      }),
    );
    const all = lists.flatMap(({ prompts }) => prompts);
    return {
      prompts: all.slice(0, LISTED_PROMPTS).map((prompt) => ({ ...prompt, arguments: [...prompt.arguments] })),
      hasMore: all.length > LISTED_PROMPTS,
      unavailable: lists.flatMap(({ away }) => away ?? []),
    };
  };
}

/** Fills in a prompt for a person, who changes and sends it: nothing is accepted here. */
export function fillPrompt({ agents, tools }: Given): ConversationHandlers["fillPrompt"] {
  return async ({ params, body, who, signal }) => {
    const promptId = body.prompt;
    const source = isNamed(await promptsOf(agents, params.id), promptId)
      ? tools.find((each) => each.fillPrompt && each.owns?.(promptId))
      : undefined;
    if (!source) throw agentErrors.prompt_not_found();
    try {
      const caller = { userId: who.userId, agentId: params.id };
      return await source.fillPrompt!({ promptId, arguments: body.arguments, caller }, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ports.ToolNotFound) throw agentErrors.prompt_not_found(undefined, {}, error);
      if (error instanceof ports.ToolArgumentsInvalid) throw agentErrors.arguments_invalid(error.message, {}, error);
      if (error instanceof ports.PromptRefused) throw agentErrors.prompt_refused(error.message, {}, error);
      if (error instanceof ports.ToolsNotConnected) throw agentErrors.connect_again(error.message, {}, error);
      if (error instanceof ports.ToolsUnavailable) throw agentErrors.source_unavailable(undefined, {}, error);
      throw error;
    }
  };
}

async function promptsOf(agents: ports.Agents, id: string): Promise<readonly string[]> {
  const agent = await agents.find(id);
  if (!agent) throw agentErrors.unknown_agent();
  return agent.definition.prompts ?? [];
}

function isNamed(named: readonly string[], id: string): boolean {
  return named.includes(id) || named.includes(`${id.split("/", 1)[0]}/*`);
}
