import { createServer } from "node:http";
import { createApp } from "@portico/core";
import { toNodeHandler } from "@portico/core/node";
import { modelProxy } from "@portico/plugins/model-proxy";
import { testing } from "@portico/presets/testing";

const app = await createApp({ name: "mine", extends: testing({}), plugins: [modelProxy({})] });
const server = createServer(toNodeHandler(app.surface("proxy")));
server.on("close", () => app.close());
server.listen(Number(process.env["PORT"] ?? 8787), "127.0.0.1", () => console.log("Models answer here:", server.address()));
