import { ProtocolError, Server } from "@modelcontextprotocol/server";

/** A red point as PNG. */
export const POINT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/**
 * An MCP server, made with the official package, with resources and prompts for tests of a client. The resources: `shop://menu` and `shop://long`
 * are texts, `shop://logo` is an image, `shop://orders/{id}` is a text for each id. The prompts: `offer`, `greet`, `talk` (its answer has
 * other parts than a person's texts), `refuse`, and `grown` after the tool `grow` was called.
 */
export function createContextServer(): Server {
  const listChanged = { listChanged: true };
  const server = new Server(
    { name: "context", version: "1" },
    { capabilities: { tools: listChanged, prompts: listChanged, resources: {} } },
  );
  const prompts: { name: string; title?: string; description?: string; arguments?: object[] }[] = [
    {
      name: "offer",
      title: "Offer a product",
      description: "Writes an offer",
      arguments: [{ name: "product", description: "What is sold", required: true }, { name: "tone" }],
    },
    { name: "greet" },
    { name: "talk" },
    { name: "refuse" },
  ];

  server.setRequestHandler("tools/list", () => ({
    tools: [{ name: "grow", description: "Adds a prompt", inputSchema: { type: "object" as const } }],
  }));
  server.setRequestHandler("tools/call", async () => {
    prompts.push({ name: "grown" });
    await server.sendPromptListChanged();
    return { content: [{ type: "text" as const, text: "grown" }] };
  });
  server.setRequestHandler("resources/read", ({ params: { uri } }) => {
    const order = /^shop:\/\/orders\/(.+)$/.exec(uri)?.[1];
    if (order !== undefined) return { contents: [{ uri, text: `Order ${order}: one pot of tea` }] };
    if (uri === "shop://menu") return { contents: [{ uri, mimeType: "text/plain", text: "Tea costs 3 coins" }] };
    if (uri === "shop://long") return { contents: [{ uri, text: `${"teapot".repeat(20_000)}the end` }] };
    if (uri === "shop://logo") return { contents: [{ uri, mimeType: "image/png", blob: POINT }] };
    throw new ProtocolError(-32_602, "The shop has no such document");
  });
  server.setRequestHandler("prompts/list", () => ({ prompts: prompts as never }));
  server.setRequestHandler("prompts/get", ({ params: { name, arguments: args = {} } }) => {
    const said = (text: string) => ({ role: "user" as const, content: { type: "text" as const, text } });
    switch (name) {
      case "offer":
        return { messages: [said(`Write an offer for ${args["product"]}${args["tone"] ? `, ${args["tone"]}` : ""}.`)] };
      case "talk":
        return {
          messages: [
            said("Look at this:"),
            { role: "user" as const, content: { type: "image" as const, mimeType: "image/png", data: POINT } },
            { role: "user" as const, content: { type: "resource" as const, resource: { uri: "shop://menu", text: "Tea" } } },
            { role: "assistant" as const, content: { type: "text" as const, text: "I see it." } },
          ],
        };
      case "refuse":
        throw new ProtocolError(-32_602, "The shop is closed on Sundays");
      default:
        return { messages: [said(`This is ${name}.`)] };
    }
  });
  return server;
}
