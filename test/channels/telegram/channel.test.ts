import { type BotApi, startBotApi } from "../../support/telegram/bot-api.ts";
import { isConnected, OWNER, telegramConfig } from "../../support/telegram/daemon.ts";
import { createPerson } from "../../support/telegram/person.ts";
import type { Update } from "../../support/telegram/updates.ts";
import { until } from "../../support/until.ts";
import { channelSuite } from "../suite.ts";

/** The Bot API server of the current test. */
const place: { api?: BotApi } = {};

channelSuite({
  name: "telegram",
  async prepare() {
    place.api = await startBotApi();
    return { config: { ...telegramConfig(place.api), authorizedUserId: OWNER }, env: {} };
  },
  async person(daemon) {
    const api = place.api!;
    await isConnected(daemon);
    const olga = createPerson(api, OWNER);
    const said = new Map<string, Update>();
    return {
      async say(text, key) {
        const earlier = said.get(key);
        if (earlier) api.updates.again({ ...earlier, update_id: api.updates.skip() });
        else said.set(key, olga.send(text));
        await until("the update to be confirmed", () => api.updates.waiting() === 0);
      },
      // A message whose delivery was uncertain after a kill is marked as a repeat; here it counts once.
      heard: () => [
        ...new Set(
          olga
            .shown()
            .filter(({ silent }) => !silent)
            .map(({ text }) => text.replace(/^\(perhaps a repeat\)\n/, "")),
        ),
      ],
      leave: () => api.down(),
      back: () => api.up(),
    };
  },
  async stranger(_daemon, text) {
    const api = place.api!;
    const eve = createPerson(api, 666);
    eve.send(text);
    await eve.sees(/This bot is private/);
  },
  isFromHere: ({ channel }) => channel === "telegram",
});
