// Kill one of three processes in the middle of a conversation: node playground/cluster/kill-one.ts
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { connectAgent } from "@portico/client";
import { OWNER_TOKEN, startCluster, type StoryProcess, WORKFLOW_TOKEN } from "./start.ts";

/** How many turns a process executes, from its metrics. */
async function turnsOf({ urls }: StoryProcess): Promise<number> {
  const answer = await fetch(`${urls["agent"]}/metrics`, { headers: { "x-agent-service-token": OWNER_TOKEN } });
  const turns = (await answer.text()).matchAll(/^portico_engine_executing\{kind="query-turn[^}]*\} (\d+)$/gm);
  return [...turns].reduce((sum, [, count]) => sum + Number(count), 0);
}

const cluster = await startCluster().catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
try {
  console.log("Three processes serve one instance, behind a balancer.");
  const workflows = { "x-workflow-service-token": WORKFLOW_TOKEN, "content-type": "application/json" };
  const errand = `${cluster.urls["workflow"]}/api/workflow`;
  const started = await fetch(`${errand}/webhook?id=errand`, { method: "POST", headers: workflows, body: "{}" });
  const { runId } = (await started.json()) as { runId: string };
  console.log("A workflow run has begun. It waits for four seconds.");

  await using client = connectAgent({ baseURL: cluster.urls["agent"]!, token: OWNER_TOKEN, transports: ["websocket"] });
  const story = client.submit({ agentId: "teller", prompt: "Tell me a story" });
  let words = 0;
  let killed: StoryProcess | undefined;
  for await (const { delta } of story) {
    words += delta ? 1 : 0;
    if (words < 5 || killed) continue;
    for (const each of cluster.processes) if ((await turnsOf(each)) > 0) killed = each;
    if (!killed) throw new Error("No process tells the story");
    console.log(`The client has ${words} words of the story. The process that executes the turn is killed.`);
    killed.child.kill("SIGKILL");
    await once(killed.child, "exit");
  }
  const end = await story.ended;
  console.log(`The client hears how the turn ended: ${end.status}, ${"code" in end ? end.code : "without a code"}.`);

  const conversationId = (await story.started)?.conversationId;
  const next = client.submit({ agentId: "teller", prompt: "And then?", conversationId });
  let answer = "";
  for await (const { delta } of next) answer += delta ?? "";
  console.log(`The same client asks on, in the same conversation. Another process answers: ${answer.trim()}`);

  const runStatus = async () => {
    const found = await fetch(`${errand}/errand/runs/${runId}`, { headers: workflows });
    return ((await found.json()) as { status: string }).status;
  };
  while ((await runStatus()) === "running") await wait(200);
  console.log(`The workflow run went on without the process: ${await runStatus()}.`);
} finally {
  await cluster.close();
}
