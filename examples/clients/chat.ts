// A chat in one session, with the official `openai` package. Each line that you type is a turn; each answer is printed with the id of its session.
//
//   npm install openai
//   node chat.ts --base-url http://127.0.0.1:8642/v1                    a new session
//   node chat.ts --base-url http://127.0.0.1:8642/v1 --session trip     a session that you name
//   node chat.ts --base-url http://127.0.0.1:8642/v1 --slug trip        by a slug, on /v1/responses
//
// What a client must do to keep its conversation: send the id back that the last answer had. After a compression it may be a new one.
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import OpenAI from "openai";

const HEADER = "X-Hermes-Session-Id";

interface Conversation {
  session: string;
  say(text: string): Promise<string>;
}

/** A session on chat completions, by its id. Only the new message is sent: the server has the others. */
function bySession(client: OpenAI, session: string, stream: boolean): Conversation {
  const turn = (text: string) => ({ model: "default", messages: [{ role: "user" as const, content: text }] });
  const options = () => ({ headers: self.session ? { [HEADER]: self.session } : {} });
  const self: Conversation = {
    session,
    async say(text) {
      if (!stream) {
        const { data, response } = await client.chat.completions.create(turn(text), options()).withResponse();
        self.session = response.headers.get(HEADER)!;
        return data.choices[0]!.message.content ?? "";
      }
      const { data, response } = await client.chat.completions.create({ ...turn(text), stream: true }, options()).withResponse();
      self.session = response.headers.get(HEADER)!;
      let answer = "";
      for await (const chunk of data) {
        answer += chunk.choices[0]?.delta.content ?? "";
        // The headers of a stream are sent before the turn ends. If the session moves, the last chunk says where to.
        self.session = (chunk as { session?: { id: string } }).session?.id ?? self.session;
      }
      return answer;
    },
  };
  return self;
}

/** A conversation on /v1/responses, by a name that the client chose. No id has to be kept. */
function bySlug(client: OpenAI, slug: string): Conversation {
  const self: Conversation = {
    session: "",
    async say(text) {
      const request = client.responses.create({ model: "default", conversation: slug, input: text });
      const { data, response } = await request.withResponse();
      self.session = response.headers.get(HEADER)!;
      return data.output_text;
    },
  };
  return self;
}

const { values } = parseArgs({
  options: {
    "base-url": { type: "string", default: "http://127.0.0.1:8642/v1" },
    session: { type: "string", default: "" },
    slug: { type: "string" },
    stream: { type: "boolean", default: false },
  },
});
// The key is read from OPENAI_API_KEY. A lost connection is tried again, so a restart of the server is not noticed.
const client = new OpenAI({ baseURL: values["base-url"], maxRetries: 5 });
const conversation = values.slug ? bySlug(client, values.slug) : bySession(client, values.session, values.stream);
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await conversation.say(line.trim());
  console.log(`[${conversation.session}] ${answer}`);
}
