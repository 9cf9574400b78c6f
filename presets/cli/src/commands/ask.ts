import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const askCommand = defineCommand({
  meta: { name: "ask", description: "Ask an agent, and print its answer" },
  args: {
    agent: { type: "positional", required: true, valueHint: "agent id", description: "Which agent" },
    prompt: { type: "positional", required: false, valueHint: "text", description: "What to ask; - reads standard input" },
    conversation: {
      type: "string",
      valueHint: "conversation id",
      description: "Goes on in this conversation; default: a new one",
    },
    replace: {
      type: "string",
      valueHint: "message id",
      description: "Takes the place of this message of yours, in a new branch of the conversation; last: the newest one",
    },
    regenerate: {
      type: "string",
      valueHint: "message id",
      description: "Makes this answer again, in a new branch of the conversation, without a text; last: the newest one",
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
    const { prompt, agent, conversation, replace, regenerate } = args;
    const answer = await askAgent(settings, { agent, prompt, conversation, replace, regenerate, url: args.url });
    if (args.json) console.log(printableJson(answer, 2));
    else if (answer.output !== undefined) console.log(printable(answer.output));
  },
});
