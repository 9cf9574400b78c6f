import type { Browser } from "../browser/chromium.ts";
import { openConsole } from "../browser/console.ts";
import { startFakeUpstream } from "../harness/fake-upstream.ts";
import { messagesEvents, toolEvents } from "../harness/stream-scripts.ts";
import { events } from "../harness/upstream-answers.ts";
import type { Gallery } from "./gallery.ts";

const ANSWER = `Six orders are late, and five of them wait for the same part.

| Order | Part | Late by |
| --- | --- | --- |
| 20417 | hinge, left | 9 days |
| 20418 | hinge, left | 9 days |
| 20431 | drawer front | 2 days |

I would **order the hinges today** and tell the customers of the other one. This query finds them:

\`\`\`sql
select id, part, due from orders
where shipped is null and due < current_date
order by due;
\`\`\`
`;

/** Pictures of the agents and of a conversation, with the answers of a model that reads its lines. */
export async function takeAgents(browser: Browser, save: (name: string) => string, gallery: Gallery): Promise<void> {
  await using upstream = await startFakeUpstream({ models: ["large"] });
  await using opened = await openConsole({
    browser,
    files: {
      "agents/dispatcher/agent.json": {
        name: "Dispatcher",
        description: "Watches orders and shipments, and says what is late.",
        tools: ["SendUserMessage", "ReadAttachment"],
        skills: ["skills/orders"],
        heartbeat: { enabled: true, everyMs: 3_600_000, prompt: "Is anything late?" },
      },
      "agents/dispatcher/skills/orders/SKILL.md":
        "---\nname: orders\ndescription: How orders are read.\n---\n\nAn order is late once its promised day is over.\n",
      "agents/bookkeeper/agent.json": {
        name: "Bookkeeper",
        description: "Reads invoices, and writes down what they say.",
        tools: ["ReadAttachment"],
      },
      "agents/night-watch/agent.json": "{",
    },
    env: { UPSTREAM_KEY: "key-of-the-upstream" },
    config: {
      providers: [
        {
          id: "main",
          type: "fake",
          protocol: "messages",
          baseUrl: upstream.baseUrl,
          credential: { env: "UPSTREAM_KEY" },
          models: ["large"],
        },
      ],
    },
    // The whole of an answer and its question.
    context: { colorScheme: "light", viewport: { width: 1280, height: 1000 } },
  });
  const { page } = opened;
  await opened.goTo("Agents");
  await gallery.take(page, { name: "agents", about: "the list of agents", page: "agents" });
  await page.getByRole("link", { name: "Dispatcher" }).click();
  const messages = page.getByRole("region", { name: "Messages" });
  const say = async (words: string, answer: string) => {
    await page.getByLabel("Message to Dispatcher").fill(words);
    await page.keyboard.press("Enter");
    await messages.getByText(answer).last().waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  };
  upstream.answerNext(events(messagesEvents("Good morning. Nothing was returned overnight.")));
  await say("Good morning", "Nothing was returned");
  await page.getByRole("link", { name: "New conversation" }).click();
  upstream.answerNext(
    events(toolEvents("SendUserMessage", { text: "Five orders wait for *hinge, left*." })),
    events(messagesEvents(ANSWER, "The list has six rows without a shipping date. Five of them name the same part.")),
  );
  await say("Which orders are late this week, and why?", "order by due");
  await messages.getByRole("button", { name: "SendUserMessage" }).waitFor();
  await page.screenshot({ path: save("console-agent") });
  await gallery.take(page, { name: "conversation", about: "a conversation with an agent", page: "agents" });
}
