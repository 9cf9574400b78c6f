import type { ports, Scope } from "@portico/core";
import { RunningCalls } from "./running-calls.ts";
import type { McpRequest, ToolServerOptions } from "./tool-server.ts";

/** A server of tools until the scope closes. The SDK is loaded at the first request, so that it does not delay the start. */
export function openToolServer<Who>(
  { bus, ...options }: Omit<ToolServerOptions<Who>, "calls"> & { readonly bus: ports.Bus | undefined },
  scope: Scope,
): { answer(incoming: McpRequest<Who>): Promise<Response> } {
  const calls = new RunningCalls(bus);
  scope.onClose(() => calls.close());
  const open = async () => {
    const { createToolServer } = await import("./tool-server.ts");
    const server = createToolServer({ ...options, calls });
    scope.onClose(() => server.close());
    return server;
  };
  let server: ReturnType<typeof open> | undefined;
  return {
    async answer(incoming) {
      server ??= open();
      return (await server).answer(incoming);
    },
  };
}
