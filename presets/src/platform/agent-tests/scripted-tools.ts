import { functionTools } from "@portico/adapters/tools/functions";
import { type Adapter, defineAdapter, ports } from "@portico/core";
import type { AgentCase, AgentCases, ToolAnswer } from "./case-file.ts";

/** Tools that a turn has by itself: they are executed, because they reach nothing outside. Only the delegation has an answer of the case. */
const EXECUTED: ReadonlySet<string> = new Set(["SendUserMessage", "ReadAttachment", "ReadSkill"]);
const DELEGATE = "DelegateToAgent";
/** The turn's own tool: the case has the documents that it reads. */
const READ_RESOURCE = "ReadResource";

/** The engine of the agents to which the tested agent delegates. */
const ANSWERING = "answers-of-a-case";

/** Maximum characters of a tool's name for models. */
const NAME_CHARACTERS = 64;

export interface ScriptedToolsGiven {
  readonly definitions: AgentCases["tools"];
  readonly answers: AgentCase["tools"];
  /** Ids of the tools that the agent names. */
  readonly named: readonly string[];
  /** Called with the id of a tool that was called, and for which the case has no answer. */
  readonly missed: (toolId: string) => void;
}

/** The tools of a case. */
export interface ScriptedTools {
  readonly adapters: readonly Adapter[];
  /** The names by which the model calls the tools, by id. */
  readonly names: ReadonlyMap<string, string>;
}

/** The tools of an agent, which answer as the case says. Tools that the file does not define take any arguments. */
export function scriptedTools({ definitions, answers, named, missed }: ScriptedToolsGiven): ScriptedTools {
  const called = new Map<string, number>();
  const answerOf = (toolId: string): ToolAnswer => {
    const given = answers[toolId];
    const all = given === undefined || Array.isArray(given) ? given : [given];
    if (!all) {
      missed(toolId);
      return { error: "The case has no answer for this tool" };
    }
    const number = called.get(toolId) ?? 0;
    called.set(toolId, number + 1);
    return all[Math.min(number, all.length - 1)]!;
  };
  const ids = [...new Set(named)].filter((id) => !EXECUTED.has(id) && id !== DELEGATE && id !== READ_RESOURCE);
  const names = namesOf(ids);
  const tools = ids.map((id) => {
    const { description, inputSchema, riskLevel, requiresConfirmation } = definitions[id] ?? UNDEFINED;
    return {
      ...{ id, name: names.get(id)!, description, inputSchema, riskLevel, requiresConfirmation },
      run: async () => resultOf(answerOf(id)),
    };
  });
  const delegated = () => {
    const { output, error } = answerOf(DELEGATE);
    if (error !== undefined) throw new Error(error);
    return textOf(output);
  };
  return {
    adapters: [
      functionTools({ id: "case", tools }),
      answeringDocuments({ answer: () => resultOf(answerOf(READ_RESOURCE)) }),
      answeringEngine({ answer: delegated }),
    ],
    names,
  };
}

const UNDEFINED = {
  description: "A tool of a case",
  inputSchema: { type: "object" },
  riskLevel: "low",
  requiresConfirmation: false,
} as const;

/** Models call tools by names with few characters. */
function namesOf(ids: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  for (const id of ids) {
    const plain = id.replace(/[^A-Za-z0-9_-]/g, "_");
    let name = plain.slice(0, NAME_CHARACTERS);
    for (let number = 2; taken.has(name); number++) {
      const end = `_${number}`;
      name = plain.slice(0, NAME_CHARACTERS - end.length) + end;
    }
    taken.add(name);
    names.set(id, name);
  }
  return names;
}

function resultOf({ output, error }: ToolAnswer): ports.ToolResult {
  const text = error ?? textOf(output);
  return { content: [{ type: "text", text }], isError: error !== undefined };
}

function textOf(output: unknown): string {
  return typeof output === "string" ? output : JSON.stringify(output ?? null);
}

/** The same agents, and any agent to which the tested agent delegates: it gives the answer of the case. */
export function withDelegates(adapter: Adapter): Adapter {
  const { spec } = adapter;
  const open: typeof spec.open = async (...given) => {
    const agents = (await spec.open(...given)) as ports.Agents;
    const find: ports.Agents["find"] = async (id) =>
      (await agents.find(id)) ?? (ports.AGENT_ID.test(id) ? delegate(id) : undefined);
    return { ...agents, find };
  };
  return { ...adapter, spec: { ...spec, open } };
}

function delegate(id: string): ports.Agent {
  return { id, definition: { name: id, engine: ANSWERING, tools: [], skills: [], core: false }, git: { hasGit: false } };
}

/** In place of the sources that have the resources of the agent. */
const answeringDocuments = defineAdapter({
  name: "tools/documents-of-a-case",
  port: ports.tools,
  needs: {},
  open: (_given, { answer }: { readonly answer: () => ports.ToolResult }): ports.ToolSource => ({
    id: "documents-of-a-case",
    owns: () => true,
    list: async () => [],
    async call({ toolId }) {
      throw new ports.ToolNotFound(`There is no tool "${toolId}" here`);
    },
    readResource: async () => answer(),
  }),
});

const answeringEngine = defineAdapter({
  name: "agent-engines/answers-of-a-case",
  port: ports.agentEngines,
  needs: {},
  open: (_given, { answer }: { readonly answer: () => string }): ports.AgentEngine => ({
    id: ANSWERING,
    async run(_turn, context) {
      const output = answer();
      await context.say({ type: "text", delta: output });
      const messages = [{ role: "assistant" as const, parts: [{ type: "text" as const, text: output }] }];
      return { output, messages, toolCalls: [], end: "completed" };
    },
  }),
});
