// Nothing here runs: `npm run types` compiles it. How the page of the port `models` lists a package of the AI SDK.
import { aiSdk } from "@portico/adapters/models/ai-sdk";
import { type Adapter, Secret } from "@portico/core";

/** A provider whose package the reader installs. */
export const groq: Adapter = aiSdk({
  id: "groq",
  provider: "@ai-sdk/groq",
  models: ["llama-3.3-70b-versatile"],
  credential: new Secret(process.env["GROQ_API_KEY"] ?? ""),
});
