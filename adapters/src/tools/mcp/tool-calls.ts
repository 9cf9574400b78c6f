import { orAborted, ports } from "@portico/core";
import { faultText } from "@portico/core/kit";
import type * as v from "valibot";
import type { McpConnection } from "./connection.ts";
import { checkArguments, promptAnswerSchema, toFilledPrompt } from "./prompts.ts";
import { resourceUri } from "./resource-uri.ts";
import { faultCode, readFault } from "./server-fault.ts";
import type { McpServer } from "./server-options.ts";
import type { McpSession } from "./session.ts";
import { callAnswerSchema, errorResult, readAnswerSchema, toReadResult, toToolResult } from "./tool-result.ts";

interface Request {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

/** A request that needs a list of the server, and what becomes of its answer. */
interface Question<L, S extends v.GenericSchema, T> {
  /** For messages: what is asked for. */
  readonly what: string;
  readonly list: (session: McpSession) => Promise<L>;
  readonly toRequest: (list: L) => Request | Promise<Request>;
  readonly schema: S;
  readonly read: (answer: v.InferOutput<S>) => T;
  /** The server refused, answered too late, or gave an answer that cannot be read. */
  readonly refused: (words: string) => T;
}

/** Lists and uses what one server offers, and converts every outcome to the port's rules. */
export class ToolCalls {
  readonly #server: McpServer;
  readonly #connection: McpConnection;
  readonly #clock: ports.Clock;

  constructor(server: McpServer, connection: McpConnection, clock: ports.Clock) {
    this.#server = server;
    this.#connection = connection;
    this.#clock = clock;
  }

  async list(signal?: AbortSignal): Promise<readonly ports.ToolDefinition[]> {
    signal?.throwIfAborted();
    const { list } = await this.#read((session) => session.tools(), signal);
    return [...list.tools.values()].map(({ definition }) => definition);
  }

  async listPrompts(signal: AbortSignal): Promise<readonly ports.PromptDefinition[]> {
    signal.throwIfAborted();
    const { list } = await this.#read((session) => session.prompts(), signal);
    return [...list.values()].map(({ definition }) => definition);
  }

  async call({ toolId, arguments: args }: ports.ToolCall, signal: AbortSignal): Promise<ports.ToolResult> {
    return this.#ask(
      {
        what: "tool",
        list: (session) => session.tools(),
        toRequest: async ({ tools }) => {
          const tool = tools.get(toolId);
          if (!tool) throw new ports.ToolNotFound(`There is no such tool at MCP server "${this.#server.id}"`);
          await this.#check(tool.definition, args, signal);
          return { method: "tools/call", params: { name: tool.name, arguments: args } };
        },
        schema: callAnswerSchema,
        read: toToolResult,
        refused: errorResult,
      },
      signal,
    );
  }

  async readResource({ resourceId, values }: ports.ResourceRead, signal: AbortSignal): Promise<ports.ToolResult> {
    const uri = resourceUri(resourceId.slice(this.#server.id.length + 1), values);
    return this.#ask(
      {
        what: "resource",
        list: async () => undefined,
        toRequest: () => ({ method: "resources/read", params: { uri } }),
        schema: readAnswerSchema,
        read: toReadResult,
        refused: errorResult,
      },
      signal,
    );
  }

  async fillPrompt({ promptId, arguments: args }: ports.PromptFill, signal: AbortSignal): Promise<ports.FilledPrompt> {
    return this.#ask(
      {
        what: "prompt",
        list: (session) => session.prompts(),
        toRequest: (prompts) => {
          const prompt = prompts.get(promptId);
          if (!prompt) throw new ports.ToolNotFound(`There is no such prompt at MCP server "${this.#server.id}"`);
          checkArguments(prompt.definition, args);
          return { method: "prompts/get", params: { name: prompt.name, arguments: args } };
        },
        schema: promptAnswerSchema,
        read: toFilledPrompt,
        refused(words) {
          throw new ports.PromptRefused(words);
        },
      },
      signal,
    );
  }

  async #ask<L, S extends v.GenericSchema, T>(question: Question<L, S, T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    return (await this.#attempt(question, signal)) ?? (await this.#attempt(question, signal)) ?? this.#refuse(undefined);
  }

  /** Undefined if the server did not know the session: the request had no effect, and a retry in another session is safe. */
  async #attempt<L, S extends v.GenericSchema, T>(question: Question<L, S, T>, signal: AbortSignal): Promise<T | undefined> {
    const { what, refused } = question;
    const { session, list } = await this.#read(question.list, signal);
    const request = await question.toRequest(list);
    let answer: v.InferOutput<S>;
    try {
      answer = await this.#send(session, request, question.schema, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#connection.closing.throwIfAborted();
      if (error instanceof AnsweredTooLate)
        return refused(`The ${what} did not answer within ${this.#server.callTimeoutMs / 1000} seconds and was cancelled`);
      const fault = readFault(error);
      if (fault.kind === "refused")
        return refused(fault.words || `The server of this ${what} refused the call (${faultCode(error)})`);
      if (fault.kind === "unreadable") return refused(`The server of this ${what} gave an answer that cannot be read`);
      const isForgotten = fault.kind === "unavailable" && (await orAborted(session.isForgotten(error), signal));
      if (fault.kind === "lost" || isForgotten) session.reportLoss(error);
      if (isForgotten || (fault.kind === "lost" && fault.unheard)) return undefined;
      return this.#refuse(error);
    }
    return question.read(answer);
  }

  async #check({ inputSchema }: ports.ToolDefinition, args: unknown, signal: AbortSignal): Promise<void> {
    const checked = await this.#connection.checks.check(inputSchema, args, { isForeign: true, signal });
    if ("unusable" in checked) throw new ports.ToolArgumentsInvalid(checked.unusable);
    if ("faults" in checked) throw new ports.ToolArgumentsInvalid(faultText(checked.faults, "the arguments"));
  }

  async #send<S extends v.GenericSchema>(
    session: McpSession,
    request: Request,
    schema: S,
    signal: AbortSignal,
  ): Promise<v.InferOutput<S>> {
    const late = new AbortController();
    const stop = AbortSignal.any([signal, this.#connection.closing, late.signal]);
    // The server learns that the call was cancelled, but not the reason, which is private to the caller.
    const cancelling = new AbortController();
    const cancel = (): void => cancelling.abort("The call was cancelled");
    stop.addEventListener("abort", cancel, { once: true });
    const timer = this.#clock.after(this.#server.callTimeoutMs, () => late.abort(new AnsweredTooLate()));
    try {
      const answer = session.ask(request, schema, { signal: cancelling.signal, onprogress: () => timer.refresh() });
      return await orAborted(answer, stop);
    } finally {
      timer.cancel();
      stop.removeEventListener("abort", cancel);
    }
  }

  /** The current session with a list. Retries once if the session turns out to be lost while it reads a changed list. */
  async #read<L>(
    listOf: (session: McpSession) => Promise<L>,
    signal: AbortSignal | undefined,
    isLast = false,
  ): Promise<{ readonly session: McpSession; readonly list: L }> {
    const session = await orAborted(this.#connection.session(), signal);
    try {
      return { session, list: await orAborted(listOf(session), signal) };
    } catch (error) {
      signal?.throwIfAborted();
      this.#connection.closing.throwIfAborted();
      const isLost = readFault(error).kind === "lost" || (await orAborted(session.isForgotten(error), signal));
      if (isLost) session.reportLoss(error);
      return isLost && !isLast ? this.#read(listOf, signal, true) : this.#refuse(error);
    }
  }

  #refuse(cause: unknown): never {
    if (cause instanceof ports.ToolsNotConnected) throw cause;
    const why = cause === undefined ? "" : ` (${faultCode(cause)})`;
    throw new ports.ToolsUnavailable(`MCP server "${this.#server.id}" cannot be used now${why}`, { cause });
  }
}

class AnsweredTooLate extends Error {
  override readonly name = "AnsweredTooLate";
}
