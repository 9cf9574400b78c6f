import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const askCommand = defineCommand({
  meta: { name: "ask", description: "Ask an agent, and print its answer" },
  args: {
    agent: { type: "positional", required: true, valueHint: "agent id", description: "Which agent" },
    prompt: { type: "positional", required: true, valueHint: "text", description: "What to ask; - reads standard input" },
    conversation: {
      type: "string",
      valueHint: "conversation id",
      description: "Goes on in this conversation; default: a new one",
    },
    json: { type: "boolean", description: "Print a JSON object" },
    url: {
      type: "string",
      valueHint: "url",
      description: "Address of the agent service; default: the service that uses the data directory",
    },
    ...settingsFlags,
  },
  async run({ args }) {
    const [{ readSettings }, { askAgent }, { printable, printableJson }] = await Promise.all([
      import("../read-settings.ts"),
      import("../ask-agent.ts"),
      import("../terminal.ts"),
    ]);
    const { settings } = await readSettings(args);
    const { prompt, agent, conversation } = args;
    const answer = await askAgent(settings, { agent, prompt, conversation, url: args.url });
    if (args.json) console.log(printableJson(answer, 2));
    else if (answer.output !== undefined) console.log(printable(answer.output));
  },
});
