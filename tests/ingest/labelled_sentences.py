"""Ordinary English sentences with the type a reader gives them, for the test of content type detection."""

from __future__ import annotations

DECISION = """
We decided to use PostgreSQL instead of MySQL for the billing service.
User decided to use RLM architecture instead of RAG.
The team agreed to postpone the launch until after the holidays.
After a long discussion we settled on weekly releases.
Decision: keep the monorepo for now.
We'll go with the blue logo.
They chose Rust for the new parser because of its speed.
I've decided to move to Lisbon in the autumn.
The board approved the budget for next year.
It was decided that every pull request needs two reviewers.
We are going with Stripe as the payment provider.
Anna opted for the smaller apartment.
We voted to cancel the retreat.
The committee rejected the second proposal.
Let's use TypeScript for the frontend.
From now on, all times are stored in UTC.
We are dropping support for Python 3.9.
The final decision is to hire two more engineers.
Marcus and I finally picked a wedding date.
We agreed that Dana owns the migration.
The project will switch to GitHub Actions next month.
They have chosen the venue by the lake.
We ruled out Kubernetes as too complex for our needs.
I made the decision to quit my job.
She resolved to stop smoking.
We will adopt semantic versioning for the public API.
The plan is to sunset the old API in March.
He decided against buying the car.
We concluded that the cache is not worth the complexity and removed it.
Management signed off on the new office.
We've decided on Vue for the dashboard.
The architects chose event sourcing for the order system.
Decided: no more meetings on Wednesdays.
After comparing three vendors, we selected Hetzner.
I'm going with the cheaper insurance plan.
We have agreed to split the costs equally.
The group decided that Lena will lead the project.
Our choice fell on SQLite because it needs no server.
The team will use feature flags for all risky changes.
They finally agreed on a name for the baby.
We switched from Jenkins to GitLab CI.
I have decided that I will learn to sail this summer.
It was agreed that invoices are sent monthly.
We opted not to renew the lease.
He accepted the job offer from Siemens.
We decided against a mobile app for now.
The club chose a new captain yesterday.
I've made up my mind: I'm taking the job in Zurich.
Final call: we ship without the export feature.
They agreed to meet halfway on the price.
We are moving to a four-day week starting in May.
Kim and Lee selected oak flooring for the kitchen.
The steering group approved option B.
"""

PREFERENCE = """
User prefers Python over JavaScript.
The user likes concise answers without emojis.
I love hiking in the mountains.
My favorite color is green.
She hates waking up early.
I'd rather take the train than fly.
Please always answer in French.
He can't stand loud restaurants.
Dana prefers window seats on long flights.
I don't like cilantro.
They enjoy board games on rainy evenings.
User wants code examples with type hints.
My wife is a big fan of jazz.
He dislikes long meetings.
I would rather work from home.
Maria is fond of Italian food.
Please don't use bullet points in your replies.
The customer prefers to be contacted by email.
Our kids adore the beach.
I'm not a fan of horror movies.
Her favourite author is Ursula Le Guin.
We prefer tabs to spaces.
I like my coffee black.
Tom is really into vintage cameras.
I always prefer dark mode in my editor.
The user would like shorter summaries.
Never call me before nine, I prefer texts.
My preferred language is Go.
She loves painting with watercolors.
I am keen on trying the new ramen place because I love noodles.
The user prefers short variable names.
I really enjoy cooking Thai food.
Sarah likes her tea with honey.
He doesn't like being interrupted.
User dislikes verbose explanations.
My favourite season is autumn.
I'd prefer a window seat, please.
She is crazy about salsa dancing.
I want you to always show the full code.
John loves basketball and plays point guard.
I much prefer paper books to e-readers.
We love this little bakery around the corner.
I hate it when people are late.
Use metric units in your answers.
The client wants weekly status reports.
I'm a big fan of minimal interfaces.
Lisa doesn't enjoy crowded places.
User wants answers in German.
My preferred editor is Vim.
He loves dogs more than cats.
I'd rather not discuss politics.
We like to travel by train.
Please keep your answers short.
"""

PATTERN = """
Every time we deploy on Friday, something breaks.
Whenever it rains, the basement floods.
The user usually asks for tests after the implementation.
Sales always drop in January.
He tends to reply late in the evening.
The build often fails on the first run and passes on the second.
Each morning she goes for a run before breakfast.
Customers typically cancel within the first two weeks.
Requests spike every Monday around nine.
Whenever Sam is stressed, he plays the piano.
The nightly job keeps timing out when the backup runs.
On weekends they go camping with the kids.
Users frequently confuse the two buttons.
My back hurts whenever I sit for too long.
Most Fridays the team eats lunch together.
Each time the cache is cleared, latency doubles for an hour.
She calls her mother every Sunday.
I usually drink two cups of coffee before noon.
The server regularly runs out of memory after large imports.
When the traffic doubles, the queue always backs up.
He goes to the gym three times a week.
Reviews take longer whenever the change touches the database.
Our meetings generally start ten minutes late.
The tests fail intermittently, always at the end of the month.
He repeatedly forgets to renew the certificate.
They typically travel in September.
Errors tend to appear after a restart.
The dog barks every time the doorbell rings.
Normally the report arrives on Tuesdays.
Every other week we rotate the on-call engineer.
Every time the user is tired, they ask for short answers.
The tests usually break after a dependency update.
On Mondays the site is always slow.
She often forgets her keys.
Whenever we skip code review, bugs slip through.
He always orders the same dish.
I go swimming twice a week.
Traffic tends to peak at lunchtime.
After each release, support tickets double.
The user repeatedly asks about error handling.
Every morning I read the newspaper.
Deploys fail whenever the disk is nearly full.
They meet for coffee every Thursday.
The baby wakes up every two hours.
When the user says 'quick question', it is never quick.
Usage doubles every weekend.
He generally avoids phone calls.
I always stretch before running.
The printer jams whenever the paper is damp.
Twice a year we clean the gutters.
She keeps asking the same question.
Usually the second attempt succeeds.
Orders peak each December.
"""

FACT = """
The API rate limit is 100 requests per minute.
Paris is the capital of France.
Alice works at Acme as a data engineer.
The database runs on port 5432.
My brother lives in Toronto.
The company was founded in 1998.
Caroline is allergic to peanuts.
The Eiffel Tower is 330 meters tall.
Our production cluster has twelve nodes.
Bob was born on 4 March 1985.
The license costs 40 dollars per seat.
Water boils at 100 degrees Celsius.
The meeting room is on the third floor.
Her dog's name is Biscuit.
The warehouse contains about 9,000 items.
The function returns a list of strings.
User's timezone is UTC+2.
The contract expires on 30 June 2026.
James has two sisters.
The service is written in Go and uses gRPC.
The train from Berlin to Hamburg takes two hours.
Melanie is a mother of three.
The old office was located on Baker Street.
The config file is stored in /etc/app/config.toml.
Python 3.12 was released in October 2023.
John graduated from MIT in 2011.
The recipe requires two eggs and a cup of flour.
Mount Everest is the highest mountain on Earth.
The password policy requires twelve characters.
Evan's car is a 2014 Prius.
The server has 64 GB of memory.
Emma is a pediatrician.
The meeting starts at 10 am.
Our headquarters are in Munich.
Tim's birthday is on 12 June.
Jupiter is the largest planet.
The repository contains four packages.
Melanie has been married for five years.
The user works as a nurse in Oslo.
Version 2.1 fixed the memory leak.
The test suite takes eleven minutes.
My daughter's name is Ella.
The museum opened in 1975.
Nate won the tournament in May.
HTTP status 404 means not found.
The capital of Australia is Canberra.
Sam has a golden retriever named Max.
The invoice number is 20391.
Our CTO is called Petra.
The bridge was built in 1931.
The library closes at 8 pm.
Deborah teaches yoga in Boston.
The package weighs two kilograms.
"""

NOTE = """
Remember to buy milk on the way home.
Meeting notes from the weekly sync.
TODO: check the logs of the staging server.
Hey, how are you doing today?
What time does the store open?
Maybe we should look into a different approach.
Call the dentist tomorrow.
Thanks for your help with the move!
I wonder whether the new intern has settled in.
Ideas for the offsite: kayaking, escape room, cooking class.
Need to follow up with the landlord about the heating.
Good luck with the exam!
Let me know when you get there.
Sounds great, see you then.
Look into the flaky test next week.
Wow, that is amazing!
Could you send me the slides?
I'm so tired today.
Note: the demo went fine, more feedback later.
Interesting thought: memory might work better with fewer categories.
Ask Priya about the invoices.
Here are some random thoughts about the talk.
Draft of the blog post, unfinished.
I hope the weather holds up.
Haha, good one!
Check in with the design team about icons.
Perhaps the second option deserves another look.
That sounds like a lot of work.
Reminder: submit the travel expenses.
We should probably talk about this again.
Can you help me with this?
Just checking in.
Buy batteries and light bulbs.
Not sure what to make of this yet.
That's so cool!
Talk to legal about the contract.
Random idea: a plugin for recipes.
I should call my mom.
Hope you had a great weekend.
Notes on chapter three.
Welcome back!
What a day.
Maybe try again later.
See the attached file for details.
Looking forward to it!
Thinking about the new layout.
Where did you put the keys?
Let's catch up soon.
Pick up the parcel at the post office.
Some thoughts on testing.
It was so much fun!
No idea yet.
We could try a different supplier.
"""

LABELLED = [
    (sentence, label)
    for label, text in (
        ("decision", DECISION),
        ("preference", PREFERENCE),
        ("pattern", PATTERN),
        ("fact", FACT),
        ("note", NOTE),
    )
    for sentence in text.strip().splitlines()
]
