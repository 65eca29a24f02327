"""Small stores of plain notes and questions about them: what a first user tries.

Each entry: the notes of one store, and questions with the fragments of which one must stand in the answer (None: the
notes do not hold it). The reader was tuned on `TUNED_ON`; `CHECKED_ON` was written afterwards and only measured.
"""

from __future__ import annotations

Asked = tuple[str, tuple[str, ...] | None]
Store = tuple[tuple[str, ...], tuple[Asked, ...]]

TUNED_ON: tuple[Store, ...] = (
    (
        (
            "Dana prefers trains to planes.",
            "Dana moved to Ghent in March 2026. She works as a nurse at the harbour clinic.",
            "We decided to use PostgreSQL because of row-level security.",
        ),
        (
            ("How does Dana like to travel?", ("trains",)),
            ("What is Dana's job?", ("nurse",)),
            ("Why did we choose PostgreSQL?", ("because of row-level security",)),
            ("What is the name of Dana's cat?", None),
            ("Where does Dana live?", ("Ghent",)),
            ("When did Dana move to Ghent?", ("March 2026",)),
            ("Which database do we use?", ("PostgreSQL",)),
            ("When is Dana's birthday?", None),
        ),
    ),
    (
        ("Dana prefers trains to planes. She decided in March 2026 to move to Ghent.",),
        (
            ("How does Dana like to travel?", ("prefers trains",)),
            ("What does Dana prefer, trains or planes?", ("trains",)),
            ("What did Dana decide?", ("move to Ghent",)),
        ),
    ),
    (
        ("We chose PostgreSQL over MySQL because of its row-level security.",),
        (
            ("Why did we choose PostgreSQL?", ("because of its row-level security",)),
            ("Why PostgreSQL?", ("row-level security",)),
            ("What did we choose over MySQL?", ("PostgreSQL",)),
            ("Who chose Redis?", None),
        ),
    ),
    (
        (
            "The staging server is called heron and runs Debian 12.",
            "Deploys happen every Thursday at 14:00 from the main branch.",
            "The API key for the mail provider is kept in the vault under mail/prod.",
            "Rollbacks are done with `make rollback TAG=<previous>`.",
        ),
        (
            ("What is the staging server called?", ("heron",)),
            ("When do we deploy?", ("Thursday",)),
            ("Where is the API key for the mail provider?", ("vault",)),
            ("How do we roll back?", ("make rollback",)),
            ("Who administers the staging server?", None),
            ("What operating system runs on the staging server?", ("Debian",)),
        ),
    ),
    (
        (
            "Marco is allergic to peanuts.",
            "Marco's favourite food is mushroom risotto.",
            "Marco's sister Giulia lives in Turin with her two sons.",
        ),
        (
            ("What is Marco allergic to?", ("peanuts",)),
            ("What is Marco's favourite food?", ("mushroom risotto",)),
            ("Who is Marco's sister?", ("Giulia",)),
            ("Where does Marco's sister live?", ("Turin",)),
            ("How many sons does Giulia have?", ("two",)),
            ("What is Marco's phone number?", None),
            ("What music does Marco like?", None),
        ),
    ),
    (
        (
            "We switched from npm to pnpm since installs took nine minutes on CI.",
            "The frontend is written in Svelte.",
            "Timeouts for the payment gateway are set to 8 seconds.",
        ),
        (
            ("Why did we switch to pnpm?", ("installs took nine minutes",)),
            ("What is the frontend written in?", ("Svelte",)),
            ("What is the timeout for the payment gateway?", ("8 seconds",)),
            ("Why did we choose Svelte?", None),
            ("Which package manager do we use?", ("pnpm",)),
        ),
    ),
    (
        (
            "Ines drinks her coffee black, without sugar.",
            "Ines has a dachshund named Biscuit.",
            "Ines runs ten kilometres every Sunday morning.",
        ),
        (
            ("How does Ines take her coffee?", ("black",)),
            ("What is the name of Ines's dog?", ("Biscuit",)),
            ("How far does Ines run on Sundays?", ("ten kilometres",)),
            ("Does Ines have a dog?", ("Yes",)),
            ("What car does Ines drive?", None),
            ("How old is Ines?", None),
        ),
    ),
    (
        (
            "The rent for the workshop is 850 euros a month, due on the fifth.",
            "The landlord is Mr Okafor; his number is 0171 5550199.",
            "The spare key hangs behind the fuse box.",
        ),
        (
            ("How much is the rent?", ("850 euros",)),
            ("Who is the landlord?", ("Okafor",)),
            ("Where is the spare key?", ("behind the fuse box",)),
            ("What is the landlord's phone number?", ("0171 5550199",)),
            ("When is the rent due?", ("fifth",)),
            ("What is the wifi password?", None),
        ),
    ),
    (
        ("The user prefers answers in British English and short sentences.", "The user works night shifts."),
        (
            ("What kind of English does the user prefer?", ("British",)),
            ("When does the user work?", ("night",)),
            ("Is the user vegetarian?", None),
        ),
    ),
    (
        (
            "Tomas is our accountant. He is on leave until 3 June.",
            "Invoices go out on the last working day of the month.",
            "We decided against Stripe because their fees are too high for small amounts.",
            "Our company bank is Triodos.",
        ),
        (
            ("Who is our accountant?", ("Tomas",)),
            ("Until when is Tomas on leave?", ("3 June",)),
            ("When do invoices go out?", ("last working day",)),
            ("Why did we decide against Stripe?", ("fees are too high",)),
            ("Which bank do we use?", ("Triodos",)),
            ("What is the bank account number?", None),
            ("Where does Tomas live?", None),
        ),
    ),
    (
        (
            "Grandma Ruth was born in 1941 in Gdansk.",
            "Ruth taught chemistry at a secondary school for thirty years.",
            "Ruth loves Chopin and hates the radio.",
            "Ruth's doctor is Dr Feldman on Mill Street.",
        ),
        (
            ("When was Ruth born?", ("1941",)),
            ("Where was Ruth born?", ("Gdansk",)),
            ("What did Ruth teach?", ("chemistry",)),
            ("How long did Ruth teach?", ("thirty years",)),
            ("Which composer does Ruth like?", ("Chopin",)),
            ("What does Ruth hate?", ("radio",)),
            ("Who is Ruth's doctor?", ("Feldman",)),
            ("Who is Ruth's dentist?", None),
            ("What did Ruth study?", None),
        ),
    ),
    (
        (
            "The integration tests need Docker and take about six minutes.",
            "Run `make lint` before every commit; CI rejects unformatted code.",
            "Indentation is four spaces, never tabs.",
            "The cache was removed since it returned stale prices. Nobody noticed a slowdown.",
        ),
        (
            ("How long do the integration tests take?", ("six minutes",)),
            ("What do the integration tests need?", ("Docker",)),
            ("What should I run before a commit?", ("make lint",)),
            ("Do we indent with tabs?", ("No",)),
            ("Why was the cache removed?", ("stale prices",)),
            ("Who removed the cache?", None),
            ("How many users do we have?", None),
        ),
    ),
    (
        (
            "Leo is vegetarian and does not drink alcohol.",
            "Leo's birthday is on 9 November; he turned 34 last year.",
            "Leo would rather cycle than drive.",
            "Leo is learning Portuguese because his girlfriend comes from Porto.",
        ),
        (
            ("Is Leo vegetarian?", ("Yes",)),
            ("Does Leo drink alcohol?", ("No",)),
            ("When is Leo's birthday?", ("9 November",)),
            ("Why is Leo learning Portuguese?", ("girlfriend comes from Porto",)),
            ("What language is Leo learning?", ("Portuguese",)),
            ("Does Leo prefer driving or cycling?", ("cycl",)),
            ("Where does Leo's girlfriend come from?", ("Porto",)),
            ("What is Leo's surname?", None),
            ("Does Leo smoke?", None),
        ),
    ),
    (
        (
            "Aylin plays the oboe in the city orchestra.",
            "Aylin lives in Leeds with two cats, Miso and Tofu.",
            "Aylin can't stand horror films.",
            "Aylin started at the brewery in 2019 as a lab technician.",
        ),
        (
            ("What instrument does Aylin play?", ("oboe",)),
            ("Where does Aylin live?", ("Leeds",)),
            ("How many cats does Aylin have?", ("two",)),
            ("What are the names of Aylin's cats?", ("Miso",)),
            ("When did Aylin start at the brewery?", ("2019",)),
            ("What kind of films does Aylin dislike?", ("horror",)),
            ("Does Aylin like horror films?", ("No",)),
            ("Who is Aylin's manager?", None),
            ("What is Aylin's salary?", None),
        ),
    ),
    (
        (
            "We picked Go for the gateway because the team knew it and binaries are easy to ship.",
            "The gateway listens on port 8443.",
            "Logs are shipped to Loki and kept for 30 days.",
            "The on-call rotation changes every Monday at 10:00.",
        ),
        (
            ("Why did we choose Go?", ("team knew it",)),
            ("Which language is the gateway written in?", ("Go",)),
            ("What port does the gateway use?", ("8443",)),
            ("How long do we keep logs?", ("30 days",)),
            ("When does the on-call rotation change?", ("Monday",)),
            ("Where do the logs go?", ("Loki",)),
            ("Who is on call this week?", None),
            ("Why did we choose Loki?", None),
        ),
    ),
    (
        (
            "The car is a grey Skoda, due for inspection in October.",
            "Winter tyres are stored at Bauer's garage.",
            "The insurance costs 620 euros a year and renews on 1 January.",
        ),
        (
            ("What colour is the car?", ("grey",)),
            ("Where are the winter tyres?", ("Bauer's garage",)),
            ("How much does the insurance cost?", ("620 euros",)),
            ("When does the insurance renew?", ("1 January",)),
            ("When is the car's inspection due?", ("October",)),
            ("What is the licence plate of the car?", None),
        ),
    ),
    (
        (
            "Nora and Felix got married in June 2024 in a lighthouse.",
            "Felix is an architect and likes old maps.",
            "Nora is afraid of dogs since she was bitten as a child.",
            "Felix's parents own a vineyard near Trier.",
        ),
        (
            ("When did Nora and Felix marry?", ("June 2024",)),
            ("What does Felix do for a living?", ("architect",)),
            ("What does Felix like?", ("old maps",)),
            ("Why is Nora afraid of dogs?", ("bitten",)),
            ("What do Felix's parents own?", ("vineyard",)),
            ("Where is the vineyard of Felix's parents?", ("Trier",)),
            ("What is Nora's profession?", None),
            ("Does Felix own a vineyard?", None),
        ),
    ),
    (
        (
            "The book club meets on the first Tuesday of the month at Elif's place.",
            "Next book: The Leopard by Lampedusa, suggested by Jan.",
            "Jan brings wine; Elif bakes.",
        ),
        (
            ("When does the book club meet?", ("first Tuesday",)),
            ("Where does the book club meet?", ("Elif",)),
            ("What is the next book?", ("Leopard",)),
            ("Who suggested The Leopard?", ("Jan",)),
            ("What does Jan bring?", ("wine",)),
            ("How many members does the book club have?", None),
        ),
    ),
    (
        (
            "The user is a data analyst in Oslo.",
            "The user likes concise answers with examples.",
            "The user's laptop runs Fedora 41.",
            "We agreed to review the budget every quarter.",
        ),
        (
            ("What does the user do?", ("data analyst",)),
            ("How does the user like answers?", ("concise",)),
            ("Which operating system does the user's laptop run?", ("Fedora",)),
            ("How often do we review the budget?", ("every quarter",)),
            ("What is the user's favourite colour?", None),
        ),
    ),
    (
        (
            "I prefer dark mode and a large font.",
            "My flight to Lisbon leaves on 4 May at 07:20 from gate B12.",
            "I park the bike behind the library. My lock code is 4471.",
            "Mum's birthday is 23 August.",
        ),
        (
            ("What theme do I prefer?", ("dark mode",)),
            ("When does my flight leave?", ("4 May",)),
            ("Which gate does my flight leave from?", ("B12",)),
            ("Where do I park the bike?", ("behind the library",)),
            ("What is my lock code?", ("4471",)),
            ("When is Mum's birthday?", ("23 August",)),
            ("What is my blood type?", None),
            ("When is Dad's birthday?", None),
        ),
    ),
    (
        (
            "Release checklist. The changelog is written by hand. Tags are signed with the team key. The package "
            "goes to PyPI from CI. After the release, Mira posts a note in the forum. Old versions get security "
            "fixes for a year.",
            "Architecture: requests enter through nginx, go to the API service, and are queued in RabbitMQ. Workers "
            "are written in Rust because Python was too slow for image resizing. Results are kept in S3 for seven "
            "days.",
            "# Onboarding\n\n- New people get a laptop from Hamid.\n- VPN access takes two days.\n"
            "- Lunch is at 12:30.",
        ),
        (
            ("Who posts a note after the release?", ("Mira",)),
            ("How long do old versions get security fixes?", ("a year",)),
            ("Why are the workers written in Rust?", ("too slow",)),
            ("How long are results kept?", ("seven days",)),
            ("Which queue do we use?", ("RabbitMQ",)),
            ("Who gives new people a laptop?", ("Hamid",)),
            ("How long does VPN access take?", ("two days",)),
            ("When is lunch?", ("12:30",)),
            ("What are tags signed with?", ("team key",)),
            ("Why do we use nginx?", None),
            ("Who wrote the API service?", None),
        ),
    ),
    (
        (
            "Decision: we ship on Fridays no longer, after the outage in April.",
            "Bug: login fails on Safari when cookies are blocked.",
            "TODO: renew the TLS certificate before 30 September.",
            "Fixed the memory leak by closing the database cursor in fetch_rows().",
            "The outage was caused by a full disk on db-2.",
        ),
        (
            ("Do we ship on Fridays?", ("No",)),
            ("Why did the outage happen?", ("full disk",)),
            ("What caused the outage?", ("full disk",)),
            ("When does login fail?", ("Safari", "cookies are blocked")),
            ("When must the TLS certificate be renewed?", ("30 September",)),
            ("How was the memory leak fixed?", ("closing the database cursor",)),
            ("Who fixed the memory leak?", None),
            ("What is the password of db-2?", None),
        ),
    ),
    (
        (
            "Sanne is Bram's wife.",
            "Bram grew up in Utrecht and studied physics at Delft.",
            "Bram is 52 years old and has worked for Philips since 2003.",
            "Sanne speaks Dutch, German and a little Turkish.",
            "They plan to move to Spain after retirement.",
        ),
        (
            ("Who is Bram's wife?", ("Sanne",)),
            ("Who is Sanne?", ("wife",)),
            ("Where did Bram grow up?", ("Utrecht",)),
            ("What did Bram study?", ("physics",)),
            ("How old is Bram?", ("52",)),
            ("Where does Bram work?", ("Philips",)),
            ("Which languages does Sanne speak?", ("Dutch",)),
            ("Which company does Bram work for?", ("Philips",)),
            ("How old is Sanne?", None),
            ("Who is Bram's brother?", None),
        ),
    ),
)

CHECKED_ON: tuple[Store, ...] = (
    (
        (
            "Yusuf is a carpenter and repairs boats in winter.",
            "Yusuf's workshop is in Bremen, next to the old ferry pier.",
            "Yusuf hates early meetings.",
            "Yusuf bought a van in February 2025 for 7,400 euros.",
        ),
        (
            ("What is Yusuf's job?", ("carpenter",)),
            ("Where is Yusuf's workshop?", ("Bremen",)),
            ("What does Yusuf dislike?", ("early meetings",)),
            ("When did Yusuf buy a van?", ("February 2025",)),
            ("How much did Yusuf pay for the van?", ("7,400 euros",)),
            ("What does Yusuf repair?", ("boats",)),
            ("What is the name of Yusuf's daughter?", None),
            ("What is Yusuf's email address?", None),
        ),
    ),
    (
        (
            "The nightly backup runs at 02:30 and is copied to the second data centre.",
            "We dropped MongoDB due to its memory use.",
            "Feature flags live in config/flags.yaml.",
            "Production runs on Hetzner, staging on a machine under Olga's desk.",
            "Olga maintains the billing service.",
        ),
        (
            ("When does the backup run?", ("02:30",)),
            ("Why did we drop MongoDB?", ("memory use",)),
            ("Where are the feature flags?", ("config/flags.yaml",)),
            ("Who is responsible for the billing service?", ("Olga",)),
            ("Where does production run?", ("Hetzner",)),
            ("Is the backup copied to the second data centre?", ("Yes",)),
            ("Who maintains the search service?", None),
            ("Why did we choose Hetzner?", None),
            ("How big is the backup?", None),
        ),
    ),
    (
        (
            "Carla's favourite author is Ursula Le Guin.",
            "Carla enjoys swimming in the sea, even in November.",
            "Carla takes her tea with milk. She never drinks coffee after noon.",
            "Carla has two brothers, Enzo and Dario.",
            "Carla and Enzo share a flat in Bologna.",
        ),
        (
            ("Who is Carla's favourite author?", ("Le Guin",)),
            ("What sport does Carla enjoy?", ("swimming",)),
            ("How does Carla take her tea?", ("milk",)),
            ("Who are Carla's brothers?", ("Enzo",)),
            ("In which city does Carla live?", ("Bologna",)),
            ("Does Carla have a sister?", None),
            ("What is Carla's favourite film?", None),
            ("Who does Carla live with?", ("Enzo",)),
        ),
    ),
    (
        (
            "Our team agreed to write commit messages in the imperative.",
            "Reviews need two approvals; hotfixes need one.",
            "The minimum Python version is 3.11.",
            "We use structlog for logging because the JSON output is easy to search.",
            "Do not edit generated files in src/gen; change the templates instead.",
        ),
        (
            ("How do we write commit messages?", ("imperative",)),
            ("How many approvals does a review need?", ("two",)),
            ("Which Python version do we need?", ("3.11",)),
            ("Why do we use structlog?", ("JSON output",)),
            ("May I edit the generated files?", ("No",)),
            ("What do we use for logging?", ("structlog",)),
            ("What is our test coverage?", None),
            ("Which linter do we use?", None),
        ),
    ),
    (
        (
            "Meeting with the school: Tuesday 12 May, 16:00, room 204.",
            "Hugo needs new glasses.",
            "Hugo is in the third grade at Lindenhof school. His teacher is Mrs Brandt.",
            "Hugo wants a telescope for Christmas.",
        ),
        (
            ("When is the meeting with the school?", ("12 May",)),
            ("Who is Hugo's teacher?", ("Brandt",)),
            ("Which school does Hugo go to?", ("Lindenhof",)),
            ("What does Hugo want for Christmas?", ("telescope",)),
            ("What does Hugo need?", ("glasses",)),
            ("How tall is Hugo?", None),
        ),
    ),
    (
        (
            "The greenhouse heater broke on 3 January; Piet replaced it the next day.",
            "Tomatoes are sown in March and planted out in May.",
            "The water tank holds 1,200 litres.",
        ),
        (
            ("When did the greenhouse heater break?", ("3 January",)),
            ("Who replaced the heater?", ("Piet",)),
            ("When are tomatoes sown?", ("March",)),
            ("How much water does the tank hold?", ("1,200 litres",)),
            ("When are potatoes planted?", None),
            ("What is Piet's phone number?", None),
        ),
    ),
    (
        (
            "The customer Varga Logistics pays by invoice within 14 days.",
            "Varga Logistics chose the yearly plan to save ten percent.",
            "Their contact is Petra Nemeth, petra@varga.example.",
        ),
        (
            ("How does Varga Logistics pay?", ("invoice",)),
            ("Why did Varga Logistics choose the yearly plan?", ("save ten percent",)),
            ("Which plan did Varga Logistics choose?", ("yearly",)),
            ("Who is the contact at Varga Logistics?", ("Petra Nemeth",)),
            ("When does the contract with Varga Logistics end?", None),
        ),
    ),
    (
        (
            "Priit chose the red wallpaper for the hallway, his wife chose the lamps.",
            "The plumber comes on Wednesday 18 March at 8 am.",
            "Priit's favourite room is the attic because it is quiet.",
            "The boiler is twelve years old.",
            "Paint is stored in the cellar.",
        ),
        (
            ("When does the plumber come?", ("18 March",)),
            ("Which room does Priit like best?", ("attic",)),
            ("Why does Priit like the attic?", ("it is quiet",)),
            ("How old is the boiler?", ("twelve",)),
            ("Where do we keep the paint?", ("cellar",)),
            ("What did Priit choose for the hallway?", ("red wallpaper",)),
            ("How old is Priit?", None),
            ("What is the plumber's name?", None),
        ),
    ),
    (
        (
            "We moved the job queue from Redis to PostgreSQL to save one service.",
            "The mobile app supports iOS 16 and later.",
            "Error budgets are reviewed monthly by Amara.",
            "The search index is rebuilt every night at 01:00 and takes 40 minutes.",
            "Never log customer names.",
        ),
        (
            ("Why did we move the job queue?", ("save one service",)),
            ("Where did we move the job queue?", ("PostgreSQL",)),
            ("Which iOS version does the app support?", ("16",)),
            ("Who reviews the error budgets?", ("Amara",)),
            ("How often are error budgets reviewed?", ("monthly",)),
            ("When is the search index rebuilt?", ("01:00", "every night")),
            ("How long does the search index take?", ("40 minutes",)),
            ("May we log customer names?", ("No",)),
            ("Does the app support Android?", None),
            ("Who wrote the mobile app?", None),
        ),
    ),
    (
        (
            "Kofi speaks Twi and French and works at the town library.",
            "Kofi walks to work.",
            "Kofi's dog Pepper is afraid of thunder.",
            "Kofi wants to learn the cello.",
        ),
        (
            ("What languages does Kofi speak?", ("Twi",)),
            ("Where does Kofi work?", ("library",)),
            ("How does Kofi get to work?", ("walks",)),
            ("What is Kofi's dog called?", ("Pepper",)),
            ("What is Pepper afraid of?", ("thunder",)),
            ("What instrument does Kofi want to learn?", ("cello",)),
            ("What is Kofi afraid of?", None),
            ("Is Kofi married?", None),
        ),
    ),
)
